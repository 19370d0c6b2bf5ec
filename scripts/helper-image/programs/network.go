package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"time"
)

const (
	port = ":8080"
	// What the two say to each other: whoever else answers there does not count.
	request  = "kurl-client"
	response = "kurl-server"
	patience = 10 * time.Second
)

// network tests whether one pod reaches another by name. The server ends when a client has been answered, the client
// when it has had the answer; it asks until then.
func network(words []string) error {
	flags := flag.NewFlagSet("network", flag.ContinueOnError)
	isServer := flags.Bool("server", false, "answer one client on "+port)
	isClient := flags.Bool("client", false, "ask the server at --address until it answers")
	address := flags.String("address", "", "URL of the server")
	if err := flags.Parse(words); err != nil {
		return err
	}
	switch {
	case *isServer:
		return serveOnce()
	case *isClient && *address != "":
		for {
			err := ask(*address)
			if err == nil {
				log.Println("Success")
				return nil
			}
			log.Println(err)
			time.Sleep(time.Second)
		}
	}
	return errors.New("either --server, or --client with --address URL")
}

func serveOnce() error {
	answered := make(chan struct{}, 1)
	server := &http.Server{Addr: port, ReadTimeout: patience, WriteTimeout: patience}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1024))
		if err != nil || string(body) != request {
			http.Error(w, "not a client of this test", http.StatusBadRequest)
			return
		}
		if _, err = io.WriteString(w, response); err == nil {
			select {
			case answered <- struct{}{}:
			default:
			}
		}
	})
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	log.Printf("Listening on %s", port)
	select {
	case err := <-failed:
		return err
	case <-answered:
	}
	// The answer is sent to its end.
	within, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := server.Shutdown(within); err != nil {
		return err
	}
	log.Println("Success")
	return nil
}

func ask(address string) error {
	client := &http.Client{Timeout: patience, Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}}
	answer, err := client.Post(address, "text/plain", strings.NewReader(request))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1024))
	if err != nil {
		return err
	}
	if string(body) != response {
		return fmt.Errorf("%s: another server answers there: status %s", address, answer.Status)
	}
	return nil
}
