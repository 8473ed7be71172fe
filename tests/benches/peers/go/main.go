// Locks of Go libraries, behind the line protocol of ../../README.md.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"
)

const (
	lease  = 30 * time.Second
	hotKey = "bench"
	stock  = "bench-stock"
)

// An acquire waits as long as it takes, and returns the release.
type acquire func(key string) (release func())

func main() {
	library, kind, url, process := os.Args[1], os.Args[2], os.Args[3], os.Args[5]
	tasks, err := strconv.Atoi(os.Args[4])
	check(err)
	options, err := redis.ParseURL(url)
	check(err)
	// Each waiting task has a connection, as in redis-py and Redisson.
	options.PoolSize = 64
	options.PoolTimeout = time.Minute
	client := redis.NewClient(options)
	check(client.Ping(context.Background()).Err())
	lock := redsyncLock(client)
	if library == "redislock" {
		lock = redislockLock(client)
	}
	lines := bufio.NewScanner(os.Stdin)
	switch kind {
	case "turns":
		turns(lock, lines)
	case "crowd":
		crowd(lock, tasks, lines)
	default:
		shop := redis.NewClient(options)
		fmt.Println("ready")
		for lines.Scan() {
			report(cycles(lock, kind, process, tasks, shop, seconds(lines.Text())))
		}
	}
}

// Its defaults: it looks again after 50 to 250 ms, and gives up after 32 tries. A user who wants to
// wait repeats that.
func redsyncLock(client *redis.Client) acquire {
	locks := redsync.New(goredis.NewPool(client))
	return func(key string) func() {
		mutex := locks.NewMutex(key, redsync.WithExpiry(lease))
		for mutex.Lock() != nil {
		}
		return func() {
			_, err := mutex.Unlock()
			check(err)
		}
	}
}

// It has no retries by default, so it gets the exponential pause of the bare loop: 1 to 64 ms.
func redislockLock(client *redis.Client) acquire {
	locks := redislock.New(client)
	return func(key string) func() {
		// Without a deadline, the lease would be the deadline.
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		lock, err := locks.Obtain(ctx, key, lease, &redislock.Options{
			RetryStrategy: redislock.ExponentialBackoff(time.Millisecond, 64*time.Millisecond),
		})
		check(err)
		return func() {
			check(lock.Release(context.Background()))
			cancel()
		}
	}
}

type done struct {
	cycles  int64
	late    int64
	waits   map[int]int64
	longest time.Duration
}

func cycles(lock acquire, kind, process string, tasks int, shop *redis.Client, length float64) map[string]any {
	until := time.Now().Add(time.Duration(length * 1e9))
	all := make([]done, tasks)
	var running sync.WaitGroup
	for task := range all {
		running.Add(1)
		go func() {
			defer running.Done()
			key := hotKey
			if kind == "own" {
				key = fmt.Sprintf("%s:%s:%d", hotKey, process, task)
			}
			all[task] = taskCycles(lock, kind, key, shop, until)
		}()
	}
	running.Wait()
	counts, late, waits, longest := []int64{}, int64(0), map[int]int64{}, time.Duration(0)
	for _, one := range all {
		counts = append(counts, one.cycles)
		late += one.late
		longest = max(longest, one.longest)
		for bucket, count := range one.waits {
			waits[bucket] += count
		}
	}
	return map[string]any{
		"seconds":    length,
		"tasks":      counts,
		"late":       late,
		"waits":      waits,
		"longest_ns": longest.Nanoseconds(),
	}
}

func taskCycles(lock acquire, kind, key string, shop *redis.Client, until time.Time) done {
	result := done{waits: map[int]int64{}}
	for {
		asked := time.Now()
		if !asked.Before(until) {
			return result
		}
		release := lock(key)
		got := time.Now()
		if got.Before(until) {
			result.longest = max(result.longest, got.Sub(asked))
			result.waits[int(50*math.Log(math.Max(float64(got.Sub(asked)), 1)))]++
			if kind == "sale" {
				sell(shop)
			}
		} else {
			result.longest = max(result.longest, until.Sub(asked))
		}
		release()
		if time.Now().Before(until) {
			result.cycles++
		} else {
			result.late++
		}
	}
}

func sell(shop *redis.Client) {
	ctx := context.Background()
	left, err := shop.Get(ctx, stock).Int64()
	if err != redis.Nil {
		check(err)
	}
	check(shop.Set(ctx, stock, left-1, 0).Err())
}

func turns(lock acquire, lines *bufio.Scanner) {
	fmt.Println("ready")
	held := make(chan func(), 1)
	for lines.Scan() {
		switch lines.Text() {
		case "ask":
			fmt.Println("asking")
			go func() {
				release := lock(hotKey)
				fmt.Println("held", clock())
				held <- release
			}()
		case "release":
			release := <-held
			began := clock()
			release()
			fmt.Println("released", began)
		}
	}
}

func crowd(lock acquire, tasks int, lines *bufio.Scanner) {
	first := lock(hotKey)
	before := residentBytes()
	var served atomic.Int64
	for range tasks {
		go func() {
			lock(hotKey)()
			served.Add(1)
		}()
	}
	time.Sleep(3 * time.Second)
	memory := residentBytes() - before
	fmt.Println("ready")
	if !lines.Scan() {
		return
	}
	length, started := seconds(lines.Text()), time.Now()
	first()
	for time.Since(started).Seconds() < length && served.Load() < int64(tasks) {
		time.Sleep(time.Millisecond)
	}
	report(map[string]any{
		"seconds": time.Since(started).Seconds(),
		"tasks":   []int64{served.Load()},
		"more":    map[string]float64{"bytes a waiter": float64(memory) / float64(tasks)},
	})
	os.Exit(0)
}

func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	check(err)
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	check(err)
	return pages * int64(os.Getpagesize())
}

// The machine's monotonic clock, the same in every process.
func clock() int64 {
	var now unix.Timespec
	check(unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	return now.Nano()
}

func seconds(command string) float64 {
	value, err := strconv.ParseFloat(strings.TrimPrefix(command, "go "), 64)
	check(err)
	return value
}

func report(figures map[string]any) {
	text, err := json.Marshal(figures)
	check(err)
	fmt.Println(string(text))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
