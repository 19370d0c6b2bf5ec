/** Latency of synced writes, measured by fio in a temporary folder. */
import { access, constants, realpath, rm, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import * as v from 'valibot';
import { asError } from '../../../core/errors.ts';
import { isObject } from '../../../core/json.ts';
import { byKey } from '../../../core/schema.ts';
import { makeTemporary, sweepTemporary } from '../../../platform/files/temporary.ts';
import { type Check, limitOf } from '../check.ts';
import { parseDuration } from '../../../core/units.ts';
import { formatDuration, parseQuantity } from '../go-notation.ts';
import { CollectProblem, type Host, hostPath, outputOf } from '../host.ts';
import {
  AnalyzerProblem,
  type AnalyzerResult,
  compareNumbers,
  firstOutcome,
  messageOf,
  checkResult,
  splitCondition,
} from '../outcome.ts';
import type { Settings } from '../check-settings.ts';
import type { AnalyzerSpec } from '../spec.ts';
import { existingFolder } from './disk-usage.ts';

/** Nanoseconds of a sync after a write: `min`, `max`, `average`, `p1` … `p9999`. */
type FilesystemFacts = Readonly<Record<string, number>>;

const DEFAULT_LIMIT = 60_000;
const JOB = 'fsperf';

/** fio's percentiles, by their names in specs. */
const PERCENTILES: Readonly<Record<string, string>> = {
  p1: '1.000000',
  p5: '5.000000',
  p10: '10.000000',
  p20: '20.000000',
  p30: '30.000000',
  p40: '40.000000',
  p50: '50.000000',
  p60: '60.000000',
  p70: '70.000000',
  p80: '80.000000',
  p90: '90.000000',
  p95: '95.000000',
  p99: '99.000000',
  p995: '99.500000',
  p999: '99.900000',
  p9995: '99.950000',
  p9999: '99.990000',
};

export const filesystemPerformance: Check<FilesystemFacts> = {
  kind: 'filesystemPerformance',
  isProgram: true,
  acts: true,
  settings: {
    operationSize: 'whole',
    directory: 'text!',
    fileSize: 'text',
    sync: 'yesno',
    datasync: 'yesno',
    runTime: 'text',
    timeout: 'text',
    enableBackgroundIOPS: 'yesno',
    backgroundIOPSWarmupSeconds: 'whole',
    backgroundWriteIOPS: 'whole',
    backgroundReadIOPS: 'whole',
    backgroundWriteIOPSJobs: 'whole',
    backgroundReadIOPSJobs: 'whole',
  },
  limitMs: (settings) => limitOf(settings, DEFAULT_LIMIT),
  mutexKey: () => 'disk',
  collect: async (settings, host) => {
    const directory = hostPath(host, resolve('/', settings.text('directory') ?? ''));
    // Such as one that an earlier version left there.
    sweepTemporary(directory);
    const folder = makeTemporary('preflight', { parent: await besides(directory), hidden: true });
    try {
      return await measure(folder, settings, host);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
  facts: byKey(v.pipe(v.number(), v.minValue(0))),
  title: 'Filesystem Performance',
  analyze: (facts, spec): readonly AnalyzerResult[] =>
    analyze(facts, spec).map((one) => ({ ...one, message: messageOf(one.message, durations(facts)) })),
  withoutFacts: ({ outcomes: [first] }: AnalyzerSpec): readonly AnalyzerResult[] | undefined =>
    first?.when === NOT_COLLECTED ? [checkResult(first)] : undefined,
};

/**
 * An existing folder on the file system of `directory`, outside of it if possible: kubeadm refuses a data folder that is not
 * empty, as it would be after this process is killed.
 */
async function besides(directory: string): Promise<string> {
  const existing = await existingFolder(directory);
  if (existing !== directory) return existing;
  const path = await realpath(existing);
  const parent = dirname(path);
  const [own, above] = await Promise.all([stat(path), stat(parent)]);
  const isWritable = await access(parent, constants.W_OK).then(
    () => true,
    () => false,
  );
  return own.dev === above.dev && isWritable ? parent : path;
}

async function measure(folder: string, settings: Settings, host: Host): Promise<FilesystemFacts> {
  const size = settings.text('fileSize');
  const bytes = size === undefined ? 10 << 20 : parseQuantity(size);
  if (bytes === undefined || bytes <= 0) throw new CollectProblem(`fileSize ${JSON.stringify(size)} is not a size`);
  const seconds = Number(settings.text('runTime') ?? '120');
  if (!Number.isInteger(seconds)) throw new CollectProblem('runTime is not a number of seconds');
  const args = [
    '--rw=write',
    '--ioengine=sync',
    '--fdatasync=1',
    `--directory=${folder}`,
    `--size=${bytes}`,
    `--bs=${settings.whole('operationSize') ?? 1024}`,
    `--name=${JOB}`,
    ...(seconds > 0 ? [`--runtime=${seconds}`] : []),
    '--output-format=json',
  ];
  const stop = new AbortController();
  const signal = AbortSignal.any([host.signal, stop.signal]);
  const around = background(folder, settings, { ...host, signal });
  // Only errors of the measurement itself are reported.
  const ended = Promise.allSettled(around);
  try {
    if (around.length > 0) {
      const warmUp = (settings.whole('backgroundIOPSWarmupSeconds') ?? 0) * 1000;
      // Nothing warms up once all of them have failed, as without fio.
      await Promise.race([pause(warmUp, undefined, { signal }), ended]);
    }
    return latencies(await outputOf('fio', args, host));
  } finally {
    stop.abort();
    await ended;
  }
}

/** Reads and writes during the measurement, so that the disk is as busy as in production. */
function background(folder: string, settings: Settings, host: Host): readonly Promise<string>[] {
  if (!settings.yes('enableBackgroundIOPS')) return [];
  return (['Read', 'Write'] as const).flatMap((way) => {
    const jobs = settings.whole(`background${way}IOPSJobs`) ?? 0;
    const rate = settings.whole(`background${way}IOPS`) ?? 0;
    if (jobs === 0 || rate === 0) return [];
    const args = [
      `--name=background-${way.toLowerCase()}`,
      `--rw=rand${way.toLowerCase()}`,
      '--bs=4096',
      '--direct=1',
      '--size=100M',
      `--directory=${folder}`,
      `--numjobs=${jobs}`,
      `--rate_iops=${Math.max(1, Math.round(rate / jobs))}`,
      '--time_based',
      // They outlive a killed process until then.
      `--runtime=${Math.ceil(limitOf(settings, DEFAULT_LIMIT) / 1000)}`,
    ];
    return [outputOf('fio', args, host)];
  });
}

/** fio's report, `--output-format=json`: jobs[].sync.lat_ns. */
function latencies(text: string): FilesystemFacts {
  let report: unknown;
  try {
    report = JSON.parse(text);
  } catch (error) {
    throw new CollectProblem(`the report of fio is not JSON: ${asError(error).message}`);
  }
  const jobs: unknown = isObject(report) ? report['jobs'] : undefined;
  const job = Array.isArray(jobs)
    ? (jobs as readonly unknown[]).find((one) => isObject(one) && one['jobname'] === JOB)
    : undefined;
  const sync = isObject(job) ? job['sync'] : undefined;
  const latency = isObject(sync) ? sync['lat_ns'] : undefined;
  if (!isObject(latency)) throw new CollectProblem('fio reports no latency of syncs');
  const percentiles = isObject(latency['percentile']) ? latency['percentile'] : {};
  const number = (value: unknown): number => (typeof value === 'number' && value >= 0 ? Math.trunc(value) : 0);
  return {
    min: number(latency['min']),
    max: number(latency['max']),
    average: number(latency['mean']),
    ...Object.fromEntries(Object.entries(PERCENTILES).map(([name, key]) => [name, number(percentiles[key])])),
  };
}

const NOT_COLLECTED = 'fileNotCollected';
const analyze = firstOutcome(holds);

/** `p99 < 10ms`, `average >= 1s`. */
function holds(when: string, facts: FilesystemFacts): boolean {
  if (when === NOT_COLLECTED) return false;
  const [subject = '', sign = '', wanted = ''] = splitCondition(when, 3, 'p99 < 10ms');
  const duration = parseDuration(wanted);
  if (duration === undefined) throw new AnalyzerProblem(`${JSON.stringify(wanted)} is not a duration such as 10ms`);
  const name = subject.toLowerCase();
  if (!['min', 'max', 'average'].includes(name) && !Object.hasOwn(PERCENTILES, name)) {
    throw new AnalyzerProblem(`${JSON.stringify(subject)} is not one of min, max, average, p1 … p9999`);
  }
  return compareNumbers(sign, facts[name] ?? 0, Math.round(duration * 1e6));
}

/** For messages: `{{ .P99 }}`, `{{ .Average }}`, and all of them as `{{ .String }}`. */
function durations(facts: FilesystemFacts): Readonly<Record<string, string>> {
  const rows = ['min', 'max', 'average', ...Object.keys(PERCENTILES)].map(
    (name) => [`${name.charAt(0).toUpperCase()}${name.slice(1)}`, formatDuration(facts[name] ?? 0)] as const,
  );
  const table = rows.map(([name, duration]) => `${name.toLowerCase().padStart(8)}: ${duration}`).join('\n');
  return { ...Object.fromEntries(rows), String: `\n${table}` };
}
