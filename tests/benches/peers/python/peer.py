"""redis-py's asyncio Lock behind the line protocol of ../../README.md."""

import asyncio
import json
import math
import os
import sys
import time

import redis.asyncio

LEASE = 30
HOT_KEY = "bench"
STOCK = "bench-stock"


def say(line):
    print(line, flush=True)


def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Peer:
    def __init__(self, kind, url, tasks, process):
        self.kind = kind
        self.tasks = int(tasks)
        self.process = process
        if kind == "crowd":
            # Ten thousand requests at once would need more connections than a process may have.
            pool = redis.asyncio.BlockingConnectionPool.from_url(url, max_connections=64, timeout=None)
            self.locks = redis.asyncio.Redis(connection_pool=pool)
        else:
            self.locks = redis.asyncio.Redis.from_url(url)
        self.shop = redis.asyncio.Redis.from_url(url)

    def lock(self, key):
        # The lock's defaults, except for the lease: it looks again each 100 ms.
        return self.locks.lock(key, timeout=LEASE)

    async def task(self, key, until):
        cycles, late, waits, longest = 0, 0, {}, 0
        while (asked := time.monotonic_ns()) < until:
            lock = self.lock(key)
            await lock.acquire()
            got = time.monotonic_ns()
            longest = max(longest, min(got, until) - asked)
            if got < until:
                bucket = int(50 * math.log(max(got - asked, 1)))
                waits[bucket] = waits.get(bucket, 0) + 1
                if self.kind == "sale":
                    stock = await self.shop.get(STOCK)
                    await self.shop.set(STOCK, int(stock or 0) - 1)
            await lock.release()
            if time.monotonic_ns() < until:
                cycles += 1
            else:
                late += 1
        return cycles, late, waits, longest

    async def cycles(self, seconds):
        until = time.monotonic_ns() + int(seconds * 1e9)
        done = await asyncio.gather(
            *(
                self.task(f"{HOT_KEY}:{self.process}:{task}" if self.kind == "own" else HOT_KEY, until)
                for task in range(self.tasks)
            )
        )
        waits = {}
        for _, _, more, _ in done:
            for bucket, count in more.items():
                waits[bucket] = waits.get(bucket, 0) + count
        return {
            "seconds": seconds,
            "tasks": [cycles for cycles, _, _, _ in done],
            "late": sum(late for _, late, _, _ in done),
            "waits": waits,
            "longest_ns": max(longest for _, _, _, longest in done),
        }

    async def turns(self, lines):
        say("ready")
        held = asyncio.Queue()

        async def ask():
            lock = self.lock(HOT_KEY)
            await lock.acquire()
            say(f"held {time.monotonic_ns()}")
            held.put_nowait(lock)

        asking = set()
        while line := (await lines.readline()).decode().strip():
            if line == "ask":
                say("asking")
                asking.add(asyncio.create_task(ask()))
            else:
                lock = await held.get()
                began = time.monotonic_ns()
                await lock.release()
                say(f"released {began}")

    async def crowd(self, lines):
        first = self.lock(HOT_KEY)
        await first.acquire()
        before = resident_bytes()
        served = 0

        async def wait():
            nonlocal served
            lock = self.lock(HOT_KEY)
            await lock.acquire()
            await lock.release()
            served += 1

        waiting = [asyncio.create_task(wait()) for _ in range(self.tasks)]
        await asyncio.sleep(3)
        memory = resident_bytes() - before
        say("ready")
        line = (await lines.readline()).decode()
        seconds, started = float(line.split()[1]), time.monotonic()
        await first.release()
        while time.monotonic() - started < seconds and served < len(waiting):
            await asyncio.sleep(0.001)
        say(
            json.dumps(
                {
                    "seconds": time.monotonic() - started,
                    "tasks": [served],
                    "more": {"bytes a waiter": memory / self.tasks},
                }
            )
        )
        os._exit(0)

    async def run(self):
        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(lines), sys.stdin
        )
        await self.locks.ping()
        if self.kind == "turns":
            return await self.turns(lines)
        if self.kind == "crowd":
            return await self.crowd(lines)
        say("ready")
        while line := (await lines.readline()).decode():
            say(json.dumps(await self.cycles(float(line.split()[1]))))


if __name__ == "__main__":
    asyncio.run(Peer(*sys.argv[2:]).run())
