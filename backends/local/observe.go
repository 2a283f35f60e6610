//go:build unix

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"qj/jobspec"
	"qj/process"
	"qj/statefile"
)

// pair is who runs a node. Of one that is just starting it is who was started, in the guard's place.
func (f folder) pair(node int) (process.Pair, error) {
	var pair process.Pair
	err := statefile.ReadJSON(filepath.Join(f.node(node), jobspec.ProcessesFile), &pair)
	if errors.Is(err, fs.ErrNotExist) {
		err = statefile.ReadJSON(f.starter(node), &pair.Guard)
	}
	return pair, err
}

func alive(pair process.Pair) bool { return pair.Guard.Alive() || pair.Lead.Alive() }

// elsewhere names the other machine that runs the node, where the state folder is shared; else it is "".
func elsewhere(pair process.Pair) string {
	if pair.Guard.Host != "" && !pair.Guard.Here() {
		return pair.Guard.Host
	}
	return ""
}

// status is what node 0 says of the run, as long as there is somebody to say it.
func (f folder) status() (jobspec.Status, error) {
	pair, err := f.pair(0)
	if err != nil {
		return jobspec.Status{}, err
	}
	living := alive(pair) // before the report is read: the launcher reports its end, then ends
	var report jobspec.Report
	err = statefile.ReadJSON(filepath.Join(f.node(0), jobspec.ReportFile), &report)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return jobspec.Status{}, err
	}
	status := report.Status
	switch host := elsewhere(pair); {
	case status.State.Ended():
		status.Raw = "exited"
		return status, nil
	case host != "":
		status.Raw = "on " + host // and only that machine can tell whether it lives
	case living:
		status.Raw = "alive"
	default:
		return f.died(report, pair.Guard.SameBoot()), nil
	}
	if status.State == "" {
		status.State = jobspec.Preparing
	}
	return status, nil
}

// died is the end of a run whose launcher cannot report it any more.
func (f folder) died(report jobspec.Report, sameBoot bool) jobspec.Status {
	status := report.Status
	status.State, status.Raw, status.Ended = jobspec.Failed, "dead", report.At
	switch {
	case !sameBoot:
		status.Reason = jobspec.Reason{Code: jobspec.ReasonRebooted, Text: "the machine was restarted while the run was on it"}
	case report.At.IsZero():
		status.Ended = modified(f.out(0))
		status.Reason = jobspec.Reason{Code: jobspec.ReasonLauncherDied, Text: "the launcher could not start: " + said(f.out(0))}
	default:
		status.Reason = jobspec.Reason{Code: jobspec.ReasonLauncherDied, Text: "the launcher and its guard were killed"}
	}
	return status
}

// damaged is the state of a run whose files make no sense, as after a power cut. While something of it
// lives, it is not over.
func (f folder) damaged(err error) jobspec.Status {
	status := jobspec.Status{State: jobspec.Running, Raw: "damaged",
		Reason: jobspec.Reason{Code: jobspec.ReasonLauncherDied, Text: fmt.Sprintf("its files on this machine cannot be read: %v", err)}}
	if len(process.WithEnv(jobspec.EnvRunID, string(f.id))) == 0 {
		status.State, status.Ended = jobspec.Failed, modified(f.out(0))
	}
	return status
}

func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime().UTC()
}

// said is what a program that failed had to say, in one line.
func said(path string) string {
	const most = 600 // bytes, of which the last tell most
	body, err := os.ReadFile(path)
	text := strings.Join(strings.Fields(string(body)), " ")
	if err != nil || text == "" {
		return "it said nothing"
	}
	if len(text) > most {
		text = "… " + strings.ToValidUTF8(text[len(text)-most:], "")
	}
	return text
}
