/** Runs the collectors of specs in parallel, except those that would interfere with each other. */
import { asError, CurlewError, errnoOf } from '../../core/errors.ts';
import { eachLimited } from '../../platform/limit/each.ts';
import { createKeyedMutex, type KeyedMutex } from '../../platform/limit/keyed-mutex.ts';
import { LimitExceeded, within } from '../../platform/limit/within.ts';
import { createSingleFlightCache, type SingleFlightCache } from '../../platform/limit/single-flight-cache.ts';
import type { Report } from '../../core/events.ts';
import type { Json } from '../../formats/yaml/yaml.ts';
import { DEFAULT_LIMIT_MS, factNameOf, type AnyCheck } from './check.ts';
import { COLLECTORS } from './checks.ts';
import type { Fact } from './facts.ts';
import { CollectProblem, type Host } from './host.ts';
import type { CollectorSpec, HostPreflight } from './spec.ts';

interface CollectOptions extends Host {
  readonly report: Report;
  /** Maximum milliseconds of any collector; by default each has its own limit. */
  readonly limitMs?: number | undefined;
}

/** Collectors mostly wait, so this is more than any spec has. */
const WIDTH = 256;

/** The facts of all collectors that are not excluded, in the order of the specs. Throws only if it is canceled. */
export async function collectFacts(specs: readonly HostPreflight[], options: CollectOptions): Promise<readonly Fact[]> {
  const { signal } = options;
  const included = specs.flatMap(({ collectors }) => collectors).filter(({ excluded }) => !excluded);
  const order = [...included.keys()].toSorted((a, b) => startRank(included[a]) - startRank(included[b]));
  const mutex = createKeyedMutex();
  const known = createSingleFlightCache<Fact>();
  const facts: Fact[] = [];
  await eachLimited(
    order,
    async (at, context) => {
      const spec = included[at];
      if (spec === undefined) return;
      facts[at] = await collectSpec(spec, { ...options, signal: context.signal }, mutex, known);
    },
    { width: WIDTH, signal },
  );
  return facts;
}

function startRank(spec: CollectorSpec | undefined): number {
  return spec !== undefined && COLLECTORS.get(spec.kind)?.isProgram === true ? 1 : 0;
}

async function collectSpec(
  spec: CollectorSpec,
  options: CollectOptions,
  mutex: KeyedMutex,
  known: SingleFlightCache<Fact>,
): Promise<Fact> {
  const collector = COLLECTORS.get(spec.kind);
  if (collector === undefined) {
    const name = spec.name ?? spec.kind;
    return { kind: spec.kind, name, ms: 0, status: 'failed', problem: `unknown collector ${spec.kind}` };
  }
  const name = factNameOf(collector, spec.name);
  const collect = async (): Promise<Fact> => collectOne(spec, name, collector, options, mutex);
  // Facts of the machine are the same in all specs.
  return collector.shared === true ? known.get(spec.kind, collect) : collect();
}

async function collectOne(
  spec: CollectorSpec,
  name: string,
  collector: AnyCheck,
  options: CollectOptions,
  mutex: KeyedMutex,
): Promise<Fact> {
  const title = spec.name ?? spec.kind;
  const id = `preflight ${spec.kind} ${name} ${spec.place.line}`;
  const key = collector.mutexKey?.(spec.settings);
  const perform = async (): Promise<Fact> => {
    options.report({ type: 'step-started', id, title: `check ${title}` });
    const fact = await withLimit(spec, name, collector, options);
    options.report({ type: 'step-done', id, outcome: fact.status === 'collected' ? 'collected' : fact.problem });
    return fact;
  };
  return mutex.run(key === undefined ? [] : [key], perform, options);
}

/** A collector that ignores the signal is abandoned. */
async function withLimit(
  { kind, settings }: CollectorSpec,
  name: string,
  collector: AnyCheck,
  { limitMs, ...host }: CollectOptions,
): Promise<Fact> {
  const start = performance.now();
  const base = (): { kind: string; name: string; ms: number } => {
    return { kind, name, ms: Math.round(performance.now() - start) };
  };
  const called = name === factNameOf(collector, undefined) ? kind : `${kind} ${JSON.stringify(name)}`;
  try {
    const limit = Math.min(limitMs ?? Number.POSITIVE_INFINITY, collector.limitMs?.(settings) ?? DEFAULT_LIMIT_MS);
    const data: Json = await within(limit, async (at) => collector.collect(settings, { ...host, ...at }), host);
    return { ...base(), status: 'collected', data };
  } catch (error) {
    host.signal.throwIfAborted();
    if (error instanceof LimitExceeded) {
      return { ...base(), status: 'late', problem: `${called} took longer than ${(error.limit / 1000).toFixed(1)} s` };
    }
    return { ...base(), status: 'failed', problem: `${called}: ${problemOf(error)}` };
  }
}

/** Errors of the machine become the fact's problem; bugs of curlew are thrown. */
function problemOf(error: unknown): string {
  if (error instanceof TypeError && errnoOf(error) === undefined) throw error;
  if (error instanceof CollectProblem || error instanceof CurlewError) return error.message;
  return asError(error).message;
}
