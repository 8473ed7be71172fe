// etcd's own mutex, as its documentation shows it: `etcd-go "concurrency TASKS KEYS SECONDS URL"`.
// Says `ready`, begins at the next line of its input, and writes how many cycles there were, those
// of the tasks with the fewest and the most, and the seconds.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	words := strings.SplitN(os.Args[1], " ", 5)
	tasks, err := strconv.Atoi(words[1])
	must(err)
	seconds, err := strconv.Atoi(words[3])
	must(err)
	host, prefix, _ := strings.Cut(strings.TrimPrefix(words[4], "etcd://"), "/")
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   []string{host},
		DialTimeout: 10 * time.Second,
	})
	must(err)
	// A mutex belongs to its session: each task needs its own.
	mutexes := make([]*concurrency.Mutex, tasks)
	for task := range mutexes {
		session, err := concurrency.NewSession(client)
		must(err)
		key := "key"
		if words[2] == "own" {
			key = fmt.Sprintf("key-%d", task)
		}
		mutexes[task] = concurrency.NewMutex(session, prefix+"/concurrency/"+key)
	}
	fmt.Println("ready")
	_, err = bufio.NewReader(os.Stdin).ReadString('\n')
	must(err)
	var over atomic.Bool
	counts := make([]int64, tasks)
	var working sync.WaitGroup
	began := time.Now()
	for task, mutex := range mutexes {
		working.Add(1)
		go func() {
			defer working.Done()
			for !over.Load() {
				must(mutex.Lock(context.Background()))
				must(mutex.Unlock(context.Background()))
				if !over.Load() {
					atomic.AddInt64(&counts[task], 1)
				}
			}
		}()
	}
	time.Sleep(time.Duration(seconds) * time.Second)
	over.Store(true)
	took := time.Since(began).Seconds()
	var all, most int64
	fewest := int64(1) << 62
	for task := range counts {
		count := atomic.LoadInt64(&counts[task])
		all += count
		fewest = min(fewest, count)
		most = max(most, count)
	}
	fmt.Println(all, fewest, most, took)
	working.Wait()
}
