import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import org.redisson.Redisson;
import org.redisson.api.RBucket;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.LongCodec;
import org.redisson.config.Config;

/** Redisson's locks behind the line protocol of ../../../README.md. */
public final class Peer {
    private static final String HOT_KEY = "bench";

    private final String library;
    private final String kind;
    private final int tasks;
    private final String process;
    private final RedissonClient client;
    private final RBucket<Long> stock;
    private final BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));

    private Peer(String[] arguments) {
        library = arguments[0];
        kind = arguments[1];
        tasks = Integer.parseInt(arguments[3]);
        process = arguments[4];
        client = connect(arguments[2]);
        stock = kind.equals("sale") ? connect(arguments[2]).getBucket("bench-stock", LongCodec.INSTANCE) : null;
    }

    public static void main(String[] arguments) throws Exception {
        new Peer(arguments).run();
        System.exit(0);
    }

    private static RedissonClient connect(String url) {
        Config config = new Config();
        config.useSingleServer().setAddress(url.replaceAll("/$", ""));
        return Redisson.create(config);
    }

    private void run() throws Exception {
        switch (kind) {
            case "turns" -> turns();
            case "held" -> held();
            case "crowd" -> crowd();
            default -> {
                say("ready");
                for (String line; (line = commands.readLine()) != null; ) {
                    say(cycles(seconds(line)));
                }
            }
        }
    }

    private RLock lock(String key) {
        return library.equals("redisson-fair") ? client.getFairLock(key) : client.getLock(key);
    }

    /** What one task has done. One thread uses it at a time. */
    private final class Task {
        final RLock lock;
        final long id;
        final long until;
        final Map<Integer, Long> waits = new TreeMap<>();
        long cycles;
        long late;
        long longest;
        long asked;

        Task(int number, long until) {
            this.lock = lock(kind.equals("own") ? HOT_KEY + ":" + process + ":" + number : HOT_KEY);
            // Locks belong to threads. A task is not one, so it gives a thread id of its own.
            this.id = 1_000_000L + number;
            this.until = until;
        }

        boolean goesOn() {
            asked = System.nanoTime();
            return asked < until;
        }

        /** Whether there is still time for the work under the lock. */
        boolean got() {
            long got = System.nanoTime();
            longest = Math.max(longest, Math.min(got, until) - asked);
            if (got >= until) {
                return false;
            }
            int bucket = (int) (50 * Math.log(Math.max(got - asked, 1)));
            waits.merge(bucket, 1L, Long::sum);
            return true;
        }

        void released() {
            if (System.nanoTime() < until) {
                cycles++;
            } else {
                late++;
            }
        }

        Task block() {
            while (goesOn()) {
                lock.lock();
                if (got() && stock != null) {
                    Long left = stock.get();
                    stock.set((left == null ? 0 : left) - 1);
                }
                lock.unlock();
                released();
            }
            return this;
        }

        void chain(CompletableFuture<Task> end) {
            if (!goesOn()) {
                end.complete(this);
                return;
            }
            lock.lockAsync(id)
                    .thenCompose(held -> got() && stock != null ? sellAsync() : CompletableFuture.completedFuture(null))
                    .thenCompose(sold -> lock.unlockAsync(id))
                    .whenComplete((released, error) -> {
                        if (error != null) {
                            end.completeExceptionally(error);
                            return;
                        }
                        released();
                        chain(end);
                    });
        }

        private CompletionStage<Void> sellAsync() {
            return stock.getAsync().thenCompose(left -> stock.setAsync((left == null ? 0 : left) - 1));
        }
    }

    private String cycles(double seconds) throws Exception {
        long until = System.nanoTime() + (long) (seconds * 1e9);
        List<Future<Task>> running = new ArrayList<>();
        ExecutorService threads = Executors.newFixedThreadPool(tasks);
        for (int number = 0; number < tasks; number++) {
            Task task = new Task(number, until);
            if (library.equals("redisson-async")) {
                CompletableFuture<Task> end = new CompletableFuture<>();
                task.chain(end);
                running.add(end);
            } else {
                running.add(threads.submit(task::block));
            }
        }
        List<Long> counts = new ArrayList<>();
        Map<Integer, Long> waits = new TreeMap<>();
        long longest = 0;
        long late = 0;
        for (Future<Task> one : running) {
            Task task = one.get();
            counts.add(task.cycles);
            late += task.late;
            longest = Math.max(longest, task.longest);
            task.waits.forEach((bucket, count) -> waits.merge(bucket, count, Long::sum));
        }
        threads.shutdown();
        String buckets = waits.entrySet().stream()
                .map(wait -> "\"" + wait.getKey() + "\":" + wait.getValue())
                .collect(Collectors.joining(","));
        return "{\"seconds\":" + seconds + ",\"tasks\":" + counts + ",\"late\":" + late
                + ",\"waits\":{" + buckets + "},\"longest_ns\":" + longest + "}";
    }

    private void turns() throws Exception {
        // A lock belongs to the thread that took it.
        ExecutorService holder = Executors.newSingleThreadExecutor();
        BlockingQueue<RLock> held = new LinkedBlockingQueue<>();
        long id = 1;
        say("ready");
        for (String line; (line = commands.readLine()) != null; ) {
            if (line.equals("ask")) {
                say("asking");
                RLock lock = lock(HOT_KEY);
                if (library.equals("redisson-async")) {
                    lock.lockAsync(id).thenAccept(nothing -> {
                        say("held " + System.nanoTime());
                        held.add(lock);
                    });
                } else {
                    holder.submit(() -> {
                        lock.lock();
                        say("held " + System.nanoTime());
                        held.add(lock);
                    });
                }
            } else {
                RLock lock = held.take();
                Runnable release = () -> {
                    long began = System.nanoTime();
                    if (library.equals("redisson-async")) {
                        lock.unlockAsync(id).toCompletableFuture().join();
                    } else {
                        lock.unlock();
                    }
                    say("released " + began);
                };
                holder.submit(release);
            }
        }
    }

    private void held() throws Exception {
        List<CompletableFuture<Void>> asked = new ArrayList<>();
        for (int number = 0; number < tasks; number++) {
            asked.add(lock(HOT_KEY + ":" + number).lockAsync(1).toCompletableFuture());
            if (asked.size() == 64) {
                asked.forEach(CompletableFuture::join);
                asked.clear();
            }
        }
        asked.forEach(CompletableFuture::join);
        say("ready");
        for (String line; (line = commands.readLine()) != null; ) {
            double seconds = seconds(line);
            Thread.sleep((long) (seconds * 1000));
            say("{\"seconds\":" + seconds + ",\"tasks\":[]}");
        }
    }

    private void crowd() throws Exception {
        RLock first = lock(HOT_KEY);
        first.lockAsync(1).toCompletableFuture().join();
        System.gc();
        long before = residentBytes();
        AtomicLong served = new AtomicLong();
        for (int number = 0; number < tasks; number++) {
            long id = 1_000_000L + number;
            RLock lock = lock(HOT_KEY);
            lock.lockAsync(id)
                    .thenCompose(held -> lock.unlockAsync(id))
                    .thenAccept(released -> served.incrementAndGet());
        }
        Thread.sleep(3000);
        long memory = residentBytes() - before;
        say("ready");
        double seconds = seconds(commands.readLine());
        long started = System.nanoTime();
        first.unlockAsync(1).toCompletableFuture().join();
        while (System.nanoTime() - started < seconds * 1e9 && served.get() < tasks) {
            Thread.sleep(1);
        }
        say("{\"seconds\":" + (System.nanoTime() - started) / 1e9 + ",\"tasks\":[" + served.get()
                + "],\"more\":{\"bytes a waiter\":" + (double) memory / tasks + "}}");
        Runtime.getRuntime().halt(0);
    }

    private static long residentBytes() throws IOException {
        return Long.parseLong(Files.readString(Path.of("/proc/self/statm")).split(" ")[1]) * 4096;
    }

    private static double seconds(String command) {
        return Double.parseDouble(command.substring("go ".length()));
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
