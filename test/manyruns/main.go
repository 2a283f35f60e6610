// Command manyruns makes a store look old: it copies the record of one finished run many times, each under
// an id of its own. The benchmarks use it; it knows how records lie in a store, and nothing else of them.
//
//	manyruns STORE RUN COUNT
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"qj/blob"
	"qj/blob/file"
	"qj/jobspec"
)

const maxObject = 1 << 20

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "manyruns:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return errors.New("usage: manyruns STORE RUN COUNT")
	}
	store, err := file.Open(args[0])
	if err != nil {
		return err
	}
	original, idErr := jobspec.ParseRunID(args[1])
	count, countErr := strconv.Atoi(args[2])
	if err := cmp.Or(idErr, countErr); err != nil {
		return err
	}
	record, err := readRecord(ctx, store, original)
	if err != nil {
		return err
	}
	for i := range count {
		id := idOf(original, i)
		if id.Suffix() == original.Suffix() {
			continue
		}
		if err := writeRecord(ctx, store, record, original, id); err != nil {
			return err
		}
	}
	return nil
}

// readRecord reads what tells about the run, by key; neither its output nor what started it.
func readRecord(ctx context.Context, store blob.Store, id jobspec.RunID) (map[string][]byte, error) {
	folder := "runs/" + string(id) + "/"
	record := map[string][]byte{"ids/" + id.Reversed(): nil}
	for info, err := range store.List(ctx, folder, "") {
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(info.Key, folder+"logs/") || strings.HasPrefix(info.Key, folder+"boot/") {
			continue
		}
		body, err := blob.ReadAll(ctx, store, info.Key, maxObject)
		if err != nil {
			return nil, err
		}
		record[info.Key] = body
	}
	if record[folder+"run.json"] == nil {
		return nil, fmt.Errorf("the store holds no run %s", id)
	}
	return record, nil
}

func writeRecord(ctx context.Context, store blob.Store, record map[string][]byte, original, id jobspec.RunID) error {
	rename := strings.NewReplacer(string(original), string(id), original.Reversed(), id.Reversed())
	for _, key := range slices.Sorted(maps.Keys(record)) {
		body := bytes.ReplaceAll(record[key], []byte(original), []byte(id))
		if err := blob.PutBytes(ctx, store, rename.Replace(key), body, blob.Replace); err != nil {
			return err
		}
	}
	return nil
}

// idOf is the i-th id before the original, by a minute each. An odd factor spreads the last digits and
// gives no two ids the same.
func idOf(original jobspec.RunID, i int) jobspec.RunID {
	h := uint32(i+1) * 2654435761
	at := original.Time().Add(-time.Duration(i+1) * time.Minute)
	return jobspec.NewRunID(original.User(), at, [4]byte{byte(h >> 24), byte(h >> 16), byte(h >> 8), byte(h)})
}
