package blobtest_test

import (
	"testing"

	"qj/blob"
	"qj/blob/blobtest"
)

func TestMemory(t *testing.T) {
	blobtest.Run(t, func(*testing.T) blob.Store { return &blobtest.Memory{} })
}

func TestFaults(t *testing.T) {
	blobtest.Run(t, func(*testing.T) blob.Store { return &blobtest.Faults{Store: &blobtest.Memory{}} })
}
