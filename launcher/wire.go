//go:build unix

package launcher

import (
	"bufio"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"

	"qj/jobspec"
)

// The nodes of a run talk over one TLS connection each to node 0, in lines of JSON.

// message is one of them. Kind tells which of the other fields count.
type message struct {
	Kind     kind             `json:"kind"`
	Node     int              `json:"node,omitempty"`
	Host     string           `json:"host,omitempty"`
	Address  string           `json:"address,omitempty"` // go: MASTER_ADDR
	Port     int              `json:"port,omitempty"`    // go: MASTER_PORT
	Devices  []string         `json:"devices"`           // go: null = the machine hands out none
	Status   *jobspec.Status  `json:"status,omitempty"`
	Streams  map[string]int64 `json:"streams,omitempty"`
	Complete bool             `json:"complete,omitempty"`
}

type kind string

const (
	kindHello   kind = "hello"   // to node 0: node, host
	kindWelcome kind = "welcome" // from node 0: you are one of us
	kindReady   kind = "ready"   // to node 0: set up
	kindGo      kind = "go"      // from node 0: start ranks
	kindFailed  kind = "failed"  // to node 0: status; a rank failed, the others still run
	kindStop    kind = "stop"    // from node 0: end your ranks
	kindSettled kind = "settled" // to node 0: all ranks ended; status if one failed by itself
	kindVerdict kind = "verdict" // from node 0: status of the whole run
	kindLeft    kind = "left"    // to node 0: logs are shipped; streams, complete
	kindBeat    kind = "beat"    // both ways: still there
)

const (
	beatEvery  = 2 * time.Second
	beatLimit  = 15 * time.Second // silence that means the other side is lost
	maxMessage = 1 << 20
)

// wire sends and receives messages. Any goroutine may send; one receives.
type wire struct {
	conn  net.Conn
	lines *bufio.Scanner
	mu    sync.Mutex
}

func newWire(conn net.Conn) *wire {
	lines := bufio.NewScanner(conn)
	lines.Buffer(make([]byte, 0, 4096), maxMessage)
	return &wire{conn: conn, lines: lines}
}

func (w *wire) send(m message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("send %s: %w", m.Kind, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.conn.SetWriteDeadline(time.Now().Add(beatLimit)); err != nil {
		return fmt.Errorf("send %s: %w", m.Kind, err)
	}
	if _, err := w.conn.Write(append(body, '\n')); err != nil {
		return fmt.Errorf("send %s: %w", m.Kind, err)
	}
	return nil
}

// receive returns the next message that is not a beat; an error when the connection ended or was silent
// for too long.
func (w *wire) receive() (message, error) {
	for {
		if err := w.conn.SetReadDeadline(time.Now().Add(beatLimit)); err != nil {
			return message{}, err
		}
		if !w.lines.Scan() {
			if err := w.lines.Err(); err != nil {
				return message{}, err
			}
			return message{}, errors.New("connection closed")
		}
		m, err := parseMessage(w.lines.Bytes())
		if err != nil || m.Kind != kindBeat {
			return m, err
		}
	}
}

func parseMessage(line []byte) (message, error) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return message{}, fmt.Errorf("parse message: %w", err)
	}
	return m, nil
}

// beat sends beats until the connection ends or done is closed.
func (w *wire) beat(done <-chan struct{}) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if w.send(message{Kind: kindBeat}) != nil {
				return
			}
		case <-done:
			return
		}
	}
}

// The name in the certificate of every node: it is the key that proves who they are, not the name.
const peerName = "qj-run"

// peerTLS makes both sides of a run's connections show a certificate that only holders of the run's key
// can make, and accept no other. Certificates do not depend on the nodes' clocks.
func peerTLS(key jobspec.Secret) (*tls.Config, error) {
	raw, err := hex.DecodeString(key.Reveal())
	if err != nil || len(raw) != 32 {
		return nil, errors.New("read run key: want 32 bytes in hex")
	}
	seed, err := hkdf.Key(sha256.New, raw, nil, "qj peer certificate", ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("derive peer key: %w", err)
	}
	private := ed25519.NewKeyFromSeed(seed)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: peerName},
		DNSNames:     []string{peerName},
		NotBefore:    time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
		IsCA:         true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(nil, template, template, private.Public(), private)
	if err != nil {
		return nil, fmt.Errorf("make peer certificate: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make peer certificate: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}},
		RootCAs:      pool,
		ServerName:   peerName,
		ClientCAs:    pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		Time:         func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) },
	}, nil
}
