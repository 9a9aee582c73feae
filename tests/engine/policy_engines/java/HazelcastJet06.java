import com.hazelcast.jet.Traverser;
import com.hazelcast.jet.aggregate.AggregateOperations;
import com.hazelcast.jet.core.Processor;
import com.hazelcast.jet.core.SlidingWindowPolicy;
import com.hazelcast.jet.core.TimestampKind;
import com.hazelcast.jet.core.Watermark;
import com.hazelcast.jet.core.WatermarkEmissionPolicy;
import com.hazelcast.jet.core.WatermarkGenerationParams;
import com.hazelcast.jet.core.WatermarkPolicies;
import com.hazelcast.jet.core.WatermarkPolicy;
import com.hazelcast.jet.core.WatermarkSourceUtil;
import com.hazelcast.jet.core.processor.Processors;
import com.hazelcast.jet.core.test.TestInbox;
import com.hazelcast.jet.core.test.TestOutbox;
import com.hazelcast.jet.core.test.TestProcessorContext;
import com.hazelcast.jet.impl.execution.WatermarkCoalescer;
import com.hazelcast.jet.impl.util.WatermarkPolicyUtil;
import com.hazelcast.logging.NoLogFactory;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Queue;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.json.JSONArray;
import org.json.JSONObject;

/**
 * Hazelcast Jet 0.6: each line of the standard input is a trace, each line of the output its answers. The inputs are the partitions of
 * one source, whose WatermarkSourceUtil has a policy for each; with windows, what it emits goes to Jet's own processor for tumbling
 * windows. Only the clock is ours.
 */
public final class HazelcastJet06 {
    private static final int CAPACITY = 1 << 12;

    private final JSONObject trace;
    private final List<String> inputs = new ArrayList<>();
    private final WatermarkSourceUtil<long[]> source;
    private final Processor windows;
    private final TestOutbox completed = new TestOutbox(CAPACITY);
    private final Set<Long> counted = new HashSet<>();
    private long nanos;
    private Long downstream;

    private HazelcastJet06(JSONObject trace) throws Exception {
        this.trace = trace;
        for (Object input : trace.getJSONArray("inputs")) {
            inputs.add((String) input);
        }
        clock(trace.getLong("clock"));
        long idleTimeout = trace.getJSONObject("parameters").optLong("idleTimeout", WatermarkGenerationParams.DEFAULT_IDLE_TIMEOUT);
        source = new WatermarkSourceUtil<>(
                WatermarkGenerationParams.<long[]>wmGenParams(event -> event[0], this::policy, throttle(), idleTimeout));
        // The same as its public methods, with our clock in place of System.nanoTime().
        call("increasePartitionCount", new Class<?>[] {long.class, int.class}, nanos, inputs.size());
        windows = trace.isNull("window") ? null : Processors
                .aggregateToSlidingWindowP(
                        Collections.singletonList((long[] event) -> event[1]),
                        Collections.singletonList((long[] event) -> event[0]),
                        TimestampKind.EVENT,
                        SlidingWindowPolicy.tumblingWinPolicy(trace.getLong("window")),
                        AggregateOperations.counting(),
                        (start, end, key, result) -> new long[] {end, (Long) key})
                .get();
        if (windows != null) {
            windows.init(completed, new TestProcessorContext().setLogger(new NoLogFactory().getLogger("")));
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = System.out;
        System.setOut(System.err); // nothing that the engine prints is taken for an answer
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(new HazelcastJet06(new JSONObject(line)).answer());
            out.flush();
        }
    }

    private JSONObject answer() {
        JSONArray steps = new JSONArray();
        JSONObject answer = new JSONObject().put("steps", steps);
        JSONArray entries = trace.getJSONArray("entries");
        try {
            for (int number = 0; number < entries.length(); number++) {
                steps.put(step(entries.getJSONObject(number), number));
            }
            if (windows == null) {
                return answer;
            }
            while (!windows.complete()) {
                closed();
            }
            closed();
        } catch (Exception failure) {
            return answer.put("failure", failure.toString());
        }
        // Windows drop late events without a word: what is in no window by the end was late.
        for (int number = 0; number < entries.length(); number++) {
            if (entries.getJSONObject(number).has("event")) {
                steps.getJSONObject(number).put("late", !counted.contains((long) number));
            }
        }
        return answer;
    }

    private JSONObject step(JSONObject entry, int number) throws Exception {
        if (entry.has("clock")) {
            clock(entry.getLong("clock"));
            return new JSONObject();
        }
        Long before = downstream;
        JSONObject step = new JSONObject();
        boolean isEvent = entry.has("event");
        boolean forwarded = receive((Traverser<?>) call("handleEvent", new Class<?>[] {long.class, Object.class, int.class}, nanos,
                isEvent ? new long[] {entry.getLong("event"), number} : null, isEvent ? inputs.indexOf(entry.getString("input")) : 0));
        if (isEvent && windows == null) {
            step.put("late", !forwarded);
        }
        JSONObject watermarks = new JSONObject();
        JSONArray idle = new JSONArray();
        for (int input = 0; input < inputs.size(); input++) {
            long watermark = source.getWatermark(input);
            watermarks.put(inputs.get(input), watermark == Long.MIN_VALUE ? JSONObject.NULL : (Object) watermark);
            // As handleNoEvent decides which partitions it leaves out; it does not say so.
            if ((Long) field("idleTimeoutNanos") > 0 && ((long[]) field("markIdleAt"))[input] <= nanos) {
                idle.put(inputs.get(input));
            }
        }
        step.put("watermark", watermarks);
        step.put("idle", idle);
        step.put("emitted", Objects.equals(downstream, before) ? JSONObject.NULL : downstream);
        step.put("downstream", downstream == null ? JSONObject.NULL : downstream);
        return windows == null ? step : step.put("closed", new JSONArray(closed()));
    }

    /** Hand over what the source emitted; whether an event was among it. */
    private boolean receive(Traverser<?> items) {
        boolean event = false;
        for (Object item = items.next(); item != null; item = items.next()) {
            event |= item instanceof long[];
            if (item instanceof Watermark && item != WatermarkCoalescer.IDLE_MESSAGE) {
                downstream = ((Watermark) item).timestamp();
                if (windows != null && !windows.tryProcessWatermark((Watermark) item)) {
                    throw new IllegalStateException("the outbox is full");
                }
            } else if (item instanceof long[] && windows != null) {
                TestInbox inbox = new TestInbox();
                inbox.add(item);
                windows.process(0, inbox);
            }
        }
        return event;
    }

    private TreeSet<Long> closed() {
        TreeSet<Long> ends = new TreeSet<>();
        Queue<Object> queue = completed.queue(0);
        for (Object item = queue.poll(); item != null; item = queue.poll()) {
            if (item instanceof long[]) {
                ends.add(((long[]) item)[0]);
                counted.add(((long[]) item)[1]);
            }
        }
        completed.reset();
        return ends;
    }

    private WatermarkPolicy policy() {
        JSONObject given = trace.getJSONObject("parameters");
        switch (trace.getString("policy")) {
            case "with-fixed-lag":
                return WatermarkPolicies.limitingLag(given.getLong("lag")).get();
            case "limiting-lag-and-delay":
                return WatermarkPolicyUtil.limitingLagAndDelay(given.getLong("lag"), given.getLong("maxDelay"), given.getInt("samples"),
                        () -> nanos);
            case "limiting-lag-and-lull":
                return WatermarkPolicyUtil.limitingLagAndLull(given.getLong("lag"), given.getLong("maxLull"), () -> nanos);
            case "limiting-timestamp-and-wall-clock-lag":
                return WatermarkPolicyUtil.limitingTimestampAndWallClockLag(given.getLong("timestampLag"), given.getLong("wallClockLag"),
                        () -> TimeUnit.NANOSECONDS.toMillis(nanos));
            default:
                throw new IllegalArgumentException(trace.getString("policy"));
        }
    }

    private WatermarkEmissionPolicy throttle() {
        JSONObject given = trace.optJSONObject("throttle", new JSONObject());
        switch (given.optString("name", "suppress-duplicates")) {
            case "suppress-duplicates":
                return WatermarkEmissionPolicy.noThrottling();
            case "emit-by-min-step":
                return WatermarkEmissionPolicy.emitByMinStep(given.getLong("step"));
            case "emit-by-frame":
                return WatermarkEmissionPolicy.emitByFrame(
                        SlidingWindowPolicy.tumblingWinPolicy(given.getLong("frame")).withOffset(given.optLong("offset")));
            default:
                throw new IllegalArgumentException(given.getString("name"));
        }
    }

    private void clock(long reading) {
        nanos = trace.getString("clockUnit").equals("ns") ? reading : TimeUnit.MILLISECONDS.toNanos(reading);
    }

    private Object call(String name, Class<?>[] types, Object... arguments) throws Exception {
        Method method = WatermarkSourceUtil.class.getDeclaredMethod(name, types);
        method.setAccessible(true);
        try {
            return method.invoke(source, arguments);
        } catch (InvocationTargetException failed) {
            throw (Exception) failed.getCause();
        }
    }

    private Object field(String name) throws ReflectiveOperationException {
        Field field = WatermarkSourceUtil.class.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(source);
    }
}
