// Curator's mutex, as its documentation shows it: `CuratorLocks "curator TASKS KEYS SECONDS URL"`.
// Says `ready`, begins at the next line of its input, and writes how many cycles there were, those
// of the threads with the fewest and the most, and the seconds.

import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

public class CuratorLocks {
    public static void main(String[] arguments) throws Exception {
        String[] words = arguments[0].split(" ");
        int tasks = Integer.parseInt(words[1]);
        boolean hasOwnKeys = words[2].equals("own");
        double wanted = Double.parseDouble(words[3]);
        String place = words[4].substring("zookeeper://".length()).split("\\?")[0];
        String hosts = place.substring(0, place.indexOf('/'));
        String chroot = place.substring(place.indexOf('/'));
        CuratorFramework client =
            CuratorFrameworkFactory.newClient(hosts, 20_000, 10_000, new RetryOneTime(100));
        client.start();
        client.blockUntilConnected();
        System.out.println("ready");
        System.in.read();
        AtomicBoolean isOver = new AtomicBoolean();
        long[] counts = new long[tasks];
        for (int at = 0; at < tasks; at++) {
            int task = at;
            String key = hasOwnKeys ? "key-" + task : "key";
            InterProcessMutex mutex = new InterProcessMutex(client, chroot + "/curator/" + key);
            Thread thread = new Thread(() -> {
                try {
                    while (!isOver.get()) {
                        mutex.acquire();
                        mutex.release();
                        if (!isOver.get()) {
                            counts[task]++;
                        }
                    }
                } catch (Exception error) {
                    error.printStackTrace();
                    System.exit(1);
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
        long began = System.nanoTime();
        Thread.sleep((long) (wanted * 1000));
        isOver.set(true);
        double seconds = (System.nanoTime() - began) / 1e9;
        long all = 0;
        long fewest = Long.MAX_VALUE;
        long most = 0;
        for (long count : counts) {
            all += count;
            fewest = Math.min(fewest, count);
            most = Math.max(most, count);
        }
        System.out.println(all + " " + fewest + " " + most + " " + seconds);
        // The others may still work. Their turns must come, so it waits for its own threads' end.
        Thread.sleep(500);
        client.close();
        System.exit(0);
    }
}
