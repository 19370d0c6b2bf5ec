/** The state of a node in the text format of Prometheus, for node_exporter's textfile collector. Pure. */

import { metric } from '../core/prometheus.ts';

export interface MeasuredNode {
  /** `expires` is in ISO 8601. */
  readonly certificates: readonly { readonly name: string; readonly expires: string }[];
  /** The last attempt to renew them; `time` is in ISO 8601. */
  readonly renewal?: { readonly time: string; readonly problem?: string } | undefined;
  /** When the last snapshot of etcd in the install folder was written. */
  readonly snapshot?: Date | undefined;
  /** The last attempt to write one, and to copy it. */
  readonly saving?: { readonly problem?: string } | undefined;
  readonly lastRun?:
    | { readonly kind?: string | undefined; readonly ended?: string | undefined; readonly state: string }
    | undefined;
}

/** Times are in seconds, so that a file that is old still says when, and not how long ago. */
export function metricsText({ certificates, renewal, snapshot, saving, lastRun }: MeasuredNode, now: Date): string {
  const expiries = certificates.map(({ name, expires }) => [{ certificate: name }, seconds(expires)] as const);
  const { kind = 'unknown', ended, state } = lastRun ?? {};
  const run = { kind };
  return [
    metric(
      'gauge',
      'curlew_certificate_expiry_timestamp_seconds',
      'When a certificate of this node expires.',
      expiries,
    ),
    metric(
      'gauge',
      'curlew_certificate_renewal_timestamp_seconds',
      'When the last renewal of certificates began.',
      renewal === undefined ? [] : [[{}, seconds(renewal.time)]],
    ),
    metric(
      'gauge',
      'curlew_certificate_renewal_success',
      'Whether the last renewal of certificates has not failed.',
      renewal === undefined ? [] : [[{}, renewal.problem === undefined ? 1 : 0]],
    ),
    metric(
      'gauge',
      'curlew_etcd_snapshot_timestamp_seconds',
      'When the last snapshot of etcd was written to the install folder.',
      snapshot === undefined ? [] : [[{}, snapshot.getTime() / 1000]],
    ),
    metric(
      'gauge',
      'curlew_etcd_snapshot_success',
      'Whether the last snapshot of etcd, with its copy, has not failed.',
      saving === undefined ? [] : [[{}, saving.problem === undefined ? 1 : 0]],
    ),
    metric(
      'gauge',
      'curlew_last_run_timestamp_seconds',
      'When the last run of curlew on this node ended.',
      ended === undefined ? [] : [[run, seconds(ended)]],
    ),
    metric(
      'gauge',
      'curlew_last_run_success',
      'Whether the last run of curlew on this node has finished.',
      state === undefined || state === 'at work' ? [] : [[run, state === 'finished' ? 1 : 0]],
    ),
    metric('gauge', 'curlew_status_timestamp_seconds', 'When this file was written.', [[{}, now.getTime() / 1000]]),
  ].join('');
}

function seconds(time: string): number {
  return Date.parse(time) / 1000;
}
