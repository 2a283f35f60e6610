//go:build linux

package launcher

import (
	"bytes"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"qj/jobspec"
)

func FuzzParseMessage(f *testing.F) {
	code := 3
	for _, m := range []message{
		{Kind: kindHello, Node: 1, Host: "host"},
		{Kind: kindGo, Address: "host0", Port: 4711, Devices: []string{}},
		{Kind: kindFailed, Status: &jobspec.Status{State: jobspec.Failed, Ended: time.Unix(1, 2).UTC(), Exit: &jobspec.Exit{Code: &code}}},
		{Kind: kindLeft, Streams: map[string]int64{"0/rank-3": 7}, Complete: true},
	} {
		body, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte(`{"kind":`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := parseMessage(line)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "parse message: ") {
				t.Errorf("error is %q", err)
			}
			return
		}
		body, err := json.Marshal(m)
		if err != nil {
			t.Fatalf("what was read cannot be sent: %v", err)
		}
		if bytes.ContainsRune(body, '\n') {
			t.Fatalf("a message of two lines: %q", body)
		}
		again, err := parseMessage(body)
		if err != nil {
			t.Fatalf("what was sent cannot be read: %v", err)
		}
		if repeated, err := json.Marshal(again); err != nil || !bytes.Equal(repeated, body) {
			t.Errorf("%s became %s, %v", body, repeated, err)
		}
	})
}

func TestWireSkipsBeatsAndEnds(t *testing.T) {
	ours, theirs := net.Pipe()
	sender, receiver := newWire(ours), newWire(theirs)
	sent := make(chan error, 1)
	go func() {
		defer ours.Close()
		for _, m := range []message{{Kind: kindBeat}, {Kind: kindReady}, {Kind: kindBeat}} {
			if err := sender.send(m); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	if m, err := receiver.receive(); err != nil || m.Kind != kindReady {
		t.Errorf("received %+v, %v, want ready", m, err)
	}
	if m, err := receiver.receive(); err == nil {
		t.Errorf("received %+v from a closed connection", m)
	}
	if err := within(t, "the sender", sent); err != nil {
		t.Error(err)
	}
}

func TestWireRefusesWhatIsTooLong(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	go func() {
		_, _ = ours.Write(bytes.Repeat([]byte("x"), maxMessage+1)) // fails when the reader gives up
	}()
	_, err := newWire(theirs).receive()
	theirs.Close()
	if err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("a message without end: %v", err)
	}
}

func TestPeerKeyMustBeWhole(t *testing.T) {
	for _, key := range []jobspec.Secret{"", "zz", "0123", jobspec.Secret(strings.Repeat("0", 62))} {
		_, err := peerTLS(key)
		if err == nil || key != "" && strings.Contains(err.Error(), key.Reveal()) {
			t.Errorf("a key of %d digits: %v", len(key), err)
		}
	}
}

func TestListenHost(t *testing.T) {
	for master, want := range map[string]string{"127.0.0.1": "127.0.0.1", "::1": "::1", "localhost": "localhost", "10.0.0.1": "", "node0.cluster": ""} {
		if got := listenHost(master); got != want {
			t.Errorf("listenHost(%s) = %q, want %q", master, got, want)
		}
	}
}
