// Command qj sends a command to a GPU cluster and comes back to it by the end of its id.
package main

import (
	"context"
	"os"
	"os/signal"

	"qj/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends qj at once
	os.Exit(cli.Main(ctx, cli.System()))
}
