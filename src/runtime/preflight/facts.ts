/** Facts about a machine, or why they are missing, and the facts file. Pure. */
import type * as v from 'valibot';
import { errorAbout } from '../../core/errors.ts';
import { isObject, parseObject } from '../../core/json.ts';
import { fits } from '../../core/schema.ts';
import type { Json } from '../../formats/yaml/yaml.ts';
import { factNameOf, type AnyCheck } from './check.ts';
import { COLLECTORS } from './checks.ts';

export const FACTS_FORMAT = 1;
/** Maximum bytes of a facts file. */
export const FACTS_LIMIT: number = 64 << 20;
const MAX_FACTS = 10_000;
const MAX_NAME = 1024;

/** The result of one collector. */
export type Fact = {
  readonly kind: string;
  readonly name: string;
  /** Milliseconds that it took. */
  readonly ms: number;
} & (
  | { readonly status: 'collected'; readonly data: Json }
  /** `late`: it exceeded its time limit. */
  | { readonly status: 'failed' | 'late'; readonly problem: string }
);

export interface CollectedFacts {
  readonly format: typeof FACTS_FORMAT;
  /** Version of curlew that collected them. */
  readonly tool: string;
  /** ISO 8601. */
  readonly time: string;
  readonly facts: readonly Fact[];
}

/** The fact for an analyzer, by kind and name. If several have the same name, the last one with data counts. */
export function findFact(facts: readonly Fact[], check: AnyCheck, name: string | undefined): Fact | undefined {
  const factName = factNameOf(check, name);
  const matching = facts.filter((fact) => fact.kind === check.kind && fact.name === factName);
  return matching.findLast(({ status }) => status === 'collected') ?? matching.at(-1);
}

export function formatFacts(facts: CollectedFacts): string {
  return `${JSON.stringify(facts, undefined, 2)}\n`;
}

/** Parses an untrusted facts file; `file` is its name for messages. `SPEC_INVALID` for any error. */
export function parseFacts(text: string, file: string): CollectedFacts {
  const bad = errorAbout(
    'SPEC_INVALID',
    `cannot read ${file}: not a facts file`,
    'create one with: curlew preflight --save-facts FILE …',
  );
  const value = parseObject(text, bad);
  if (value['format'] !== FACTS_FORMAT)
    throw bad(`format ${JSON.stringify(value['format'])?.slice(0, 40)} is not known`);
  const { tool, time, facts } = value;
  if (typeof tool !== 'string' || typeof time !== 'string' || Number.isNaN(Date.parse(time))) throw bad('tool or time');
  if (!Array.isArray(facts) || facts.length > MAX_FACTS) throw bad('facts');
  const read = (facts as readonly unknown[]).map((fact, at) => {
    const parsed = readFact(fact);
    if (parsed === undefined) throw bad(`fact ${at + 1} does not have the shape of its kind`);
    return parsed;
  });
  return { format: FACTS_FORMAT, tool, time, facts: read };
}

function readFact(value: unknown): Fact | undefined {
  if (!isObject(value)) return undefined;
  const { kind, name, ms, status, data, problem } = value;
  if (typeof kind !== 'string' || typeof name !== 'string' || name.length > MAX_NAME) return undefined;
  if (typeof ms !== 'number' || !(ms >= 0)) return undefined;
  const base = { kind, name, ms };
  if (status === 'failed' || status === 'late') {
    return typeof problem === 'string' ? { ...base, status, problem } : undefined;
  }
  const collector = COLLECTORS.get(kind);
  if (status !== 'collected' || collector === undefined || !fits<v.GenericSchema>(collector.facts, data))
    return undefined;
  return { ...base, status, data: data as Json };
}
