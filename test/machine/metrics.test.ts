import { metricsText } from '../../src/machine/metrics.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('the metrics of a node');
const NOW = new Date('2026-01-02T00:00:00Z');
/** A sample of the text format: prometheus.io/docs/instrumenting/exposition_formats. */
const SAMPLE = /^([a-z_]+)(?:\{([a-z]+)="((?:[^"\\\n]|\\["\\n])*)"\})? (\d+(?:\.\d+)?)$/;

test('certificates, the last snapshot and the last run are samples of the text format of Prometheus', () => {
  const certificates = [
    { name: 'apiserver', expires: '2026-06-01T00:00:00Z' },
    { name: 'odd "\\ name\nof two lines', expires: '2026-07-01T00:00:00Z' },
  ];
  const lastRun = { kind: 'install', ended: '2026-01-01T00:00:00.500Z', state: 'failed' };
  const renewal = { time: '2026-01-01T00:00:00Z', problem: 'etcd does not end' };
  const snapshot = new Date('2026-01-01T12:00:00Z');
  const text = metricsText({ certificates, renewal, snapshot, saving: renewal, lastRun }, NOW);
  assert.ok(text.endsWith('\n'));
  const seen: unknown[] = [];
  let family = '';
  for (const line of text.trimEnd().split('\n')) {
    const [, kind, name] = /^# (HELP|TYPE) (\S+) \S/.exec(line) ?? [];
    if (kind === 'HELP') family = name ?? '';
    if (kind !== undefined) continue;
    const [, metric, , label, value] = SAMPLE.exec(line) ?? [];
    // The samples of one metric are together, below its help.
    assert.is(metric, family, line);
    seen.push([metric?.slice('curlew_'.length), label, Number(value)]);
  }
  assert.equal(seen, [
    ['certificate_expiry_timestamp_seconds', 'apiserver', 1_780_272_000],
    ['certificate_expiry_timestamp_seconds', String.raw`odd \"\\ name\nof two lines`, 1_782_864_000],
    ['certificate_renewal_timestamp_seconds', undefined, 1_767_225_600],
    ['certificate_renewal_success', undefined, 0],
    ['etcd_snapshot_timestamp_seconds', undefined, 1_767_268_800],
    ['etcd_snapshot_success', undefined, 0],
    ['last_run_timestamp_seconds', 'install', 1_767_225_600.5],
    ['last_run_success', 'install', 0],
    ['status_timestamp_seconds', undefined, 1_767_312_000],
  ]);
});

test('what is not known has no samples, and no help', () => {
  const text = metricsText({ certificates: [] }, NOW);
  const names = text
    .trimEnd()
    .split('\n')
    .map((line) => line.replace(/^# [A-Z]+ /, '').replace(/ .*/, ''));
  assert.equal(
    names,
    Array.from({ length: 3 }, () => 'curlew_status_timestamp_seconds'),
  );
});

test.run();
