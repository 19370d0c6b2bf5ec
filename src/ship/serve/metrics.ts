/** Metrics of the server, in the Prometheus text format (exposition format 0.0.4). */

export interface Metrics {
  readonly answered: (answer: {
    readonly route: string;
    readonly status: number;
    readonly firstByteMs: number;
    readonly cut: boolean;
  }) => void;
  readonly sent: (bytes: number) => void;
  readonly text: (gauges: Readonly<Record<string, readonly [help: string, value: number]>>) => string;
  readonly totals: () => { readonly requests: number; readonly bytes: number };
}

/** Seconds until the first byte. */
const BUCKETS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

export function createMetrics(): Metrics {
  const requests = new Map<string, number>();
  const buckets = BUCKETS.map(() => 0);
  let [bytes, total, cuts, seconds] = [0, 0, 0, 0];
  return {
    answered: ({ route, status, firstByteMs, cut }) => {
      const labels = `route="${route}",code="${status}"`;
      requests.set(labels, (requests.get(labels) ?? 0) + 1);
      total += 1;
      if (cut) cuts += 1;
      seconds += firstByteMs / 1000;
      for (const [at, limit] of BUCKETS.entries()) {
        if (firstByteMs / 1000 <= limit) buckets[at] = (buckets[at] ?? 0) + 1;
      }
    },
    sent: (more) => {
      bytes += more;
    },
    text: (gauges) => {
      const lines = [
        ...head('requests_total', 'counter', 'Completed requests.'),
        ...[...requests].map(([labels, count]) => `curlew_serve_requests_total{${labels}} ${count}`).toSorted(),
        ...head('sent_bytes_total', 'counter', 'Sent bytes of bodies.'),
        `curlew_serve_sent_bytes_total ${bytes}`,
        ...head('cut_total', 'counter', 'Truncated responses.'),
        `curlew_serve_cut_total ${cuts}`,
        ...head('first_byte_seconds', 'histogram', 'Time from a request to the first byte of its response.'),
        ...BUCKETS.map((limit, at) => `curlew_serve_first_byte_seconds_bucket{le="${limit}"} ${buckets[at] ?? 0}`),
        `curlew_serve_first_byte_seconds_bucket{le="+Inf"} ${total}`,
        `curlew_serve_first_byte_seconds_sum ${seconds}`,
        `curlew_serve_first_byte_seconds_count ${total}`,
      ];
      for (const [name, [help, value]] of Object.entries(gauges)) {
        lines.push(...head(name, 'gauge', help), `curlew_serve_${name} ${value}`);
      }
      return `${lines.join('\n')}\n`;
    },
    totals: () => ({ requests: total, bytes }),
  };
}

function head(name: string, type: string, help: string): readonly string[] {
  return [`# HELP curlew_serve_${name} ${help}`, `# TYPE curlew_serve_${name} ${type}`];
}
