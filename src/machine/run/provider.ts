/** Providers of machines: programs of the operator that create, list and delete them, with JSON on standard input and output. */
import * as v from 'valibot';
import type { Context } from '../../core/context.ts';
import { canonicalJson, digestOf, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { fieldsOf, parseText, shallowJson } from '../../core/json.ts';
import { convert, type Read } from '../../core/schema.ts';
import { secretsIn, type Secret } from '../../core/secret.ts';
import { MACHINE_NAME, REACH } from '../../fleet/schema.ts';
import { repeatUntil } from '../../platform/limit/repeat.ts';
import { runProgram } from '../../platform/process/run-program.ts';

const API = 'provider.curlew.dev/v1';
const OUTPUT_LIMIT = 4 << 20;
const LIST_MS = 60_000;
/** A change may take so many times longer than a list. */
const LONGER = 10;
const [FIRST_MS, MAX_MS] = [500, 5000];
/** Names of variables and settings whose values are not shown where a provider prints them. */
const SECRET = /TOKEN|SECRET|PASS|CREDENTIAL|KEY|AUTH/i;

export interface Provider {
  /** The name that files of clusters have for it. */
  readonly name: string;
  /** Absolute path of its program. */
  readonly program: string;
  /** Environment of the operator, with what the provider needs to act for them. */
  readonly env: Context['env'];
  /** Milliseconds that a list may take; default: a minute. */
  readonly limitMs?: number;
}

/** A machine as its provider gets it. */
export interface Wanted {
  /** `CLUSTER/NAME`: the same in each attempt of each operator, so that a provider never has two machines with it. */
  readonly uid: string;
  readonly name: string;
  /** Missing for a machine that the file does not have. */
  readonly role?: string;
  /** The settings in the file for the provider alone. */
  readonly config?: Readonly<Record<string, unknown>>;
}

/** A machine of the cluster that a provider has. It is not ready before it has an address and a host key. */
export interface Provided extends Omit<v.InferOutput<typeof machine>, 'uid'> {
  readonly name: string;
}

type Ready = Provided & Required<Pick<Provided, 'address' | 'ssh'>>;

const machine = v.object({
  uid: v.pipe(v.string(), v.regex(/^[!-~]{1,400}$/, 'not a uid')),
  ...REACH,
  /** Why it is not as its configuration says, which only a new machine can be. */
  outdated: v.exactOptional(v.pipe(v.string(), v.regex(/^[ -~]{1,200}$/, 'not a line of text'))),
});
const changed = v.object({ apiVersion: v.literal(API), machine: v.object({ uid: v.string() }) });
const listed = v.object({ apiVersion: v.literal(API), machines: v.array(machine) });

/** Machines of the cluster, also any that the file does not have. `PROGRAM_FAILED` for a list that cannot be relied on. */
export async function listProvided(
  provider: Provider,
  { cluster, machines }: { readonly cluster: string; readonly machines: readonly Wanted[] },
  signal: AbortSignal,
): Promise<readonly Provided[]> {
  const body = { cluster, machines };
  const { limitMs = LIST_MS } = provider;
  const answer = await ask(provider, { command: 'list', body, schema: listed, limitMs }, signal);
  const names = new Set<string>();
  return answer.machines.flatMap(({ uid, ...rest }): readonly Provided[] => {
    // It may list all that it has; what is not of this cluster does not count.
    if (!uid.startsWith(`${cluster}/`)) return [];
    const name = uid.slice(cluster.length + 1);
    if (names.has(name)) throw failed(provider, 'list', `it has two machines ${uid}`);
    if (!MACHINE_NAME.test(name)) throw failed(provider, 'list', `${uid} does not end with the name of a machine`);
    names.add(name);
    return [{ name, ...rest }];
  });
}

/** Ends once its list has an address and a host key for the machine, and returns them. */
export async function createProvided(provider: Provider, wanted: Wanted, signal: AbortSignal): Promise<Ready> {
  const seen = await change(provider, { command: 'create', wanted, isDone: isReady }, signal);
  if (isReady(seen)) return seen;
  throw failed(provider, 'create', `its list still has no address and host key of ${wanted.uid}`);
}

/** Ends once its list no longer has the machine. */
export async function deleteProvided(provider: Provider, wanted: Wanted, signal: AbortSignal): Promise<void> {
  const seen = await change(provider, { command: 'delete', wanted, isDone: (one) => one === undefined }, signal);
  if (seen !== undefined) throw failed(provider, 'delete', `its list still has ${wanted.uid}`);
}

/** Digest of what a provider says of a machine, and of its configuration: while both are the same, another new machine changes nothing. */
export function verdictOf({ config = {} }: Wanted, outdated: string): Digest {
  return digestOf(canonicalJson({ config, outdated }));
}

export function isReady(seen: Provided | undefined): seen is Ready {
  return seen?.address !== undefined && seen.ssh !== undefined;
}

/** Returns what its list has of the machine at the end: its own answer only says that it has begun. */
async function change(
  provider: Provider,
  options: {
    readonly command: 'create' | 'delete';
    readonly wanted: Wanted;
    readonly isDone: (seen: Provided | undefined) => boolean;
  },
  signal: AbortSignal,
): Promise<Provided | undefined> {
  const { command, wanted, isDone } = options;
  const { uid, name } = wanted;
  const limitMs = LONGER * (provider.limitMs ?? LIST_MS);
  const answer = await ask(provider, { command, body: { machine: wanted }, schema: changed, limitMs }, signal);
  if (answer.machine.uid !== uid) throw failed(provider, command, `it answers for another machine than ${uid}`);
  const about = { cluster: uid.slice(0, uid.indexOf('/')), machines: [wanted] };
  const look = async (): Promise<Looked> => {
    try {
      return { seen: (await listProvided(provider, about, signal)).find((seen) => seen.name === name) };
    } catch (error) {
      if (!(error instanceof CurlewError) || signal.aborted) throw error;
      return { error };
    }
  };
  // A list may fail while other machines come and go.
  const isEnd = (result: Looked): boolean => result.error === undefined && isDone(result.seen);
  const { seen, error } = await repeatUntil(look, isEnd, { firstMs: FIRST_MS, maxMs: MAX_MS, limitMs, signal });
  if (error !== undefined) throw error;
  return seen;
}

interface Looked {
  readonly seen?: Provided | undefined;
  /** Why the list says nothing. */
  readonly error?: CurlewError;
}

/** The document of a provider, which is checked here, once. Its standard error is in the message of a failure; its output never is. */
async function ask<Schema extends v.GenericSchema>(
  provider: Provider,
  options: {
    readonly command: string;
    readonly body: { readonly machine?: Wanted; readonly machines?: readonly Wanted[]; readonly cluster?: string };
    readonly schema: Schema;
    readonly limitMs: number;
  },
  signal: AbortSignal,
): Promise<Read<Schema>> {
  const { command, body, schema, limitMs } = options;
  const { name, program, env } = provider;
  const settings = [...(body.machines ?? []), body.machine].map((wanted) => wanted?.config ?? {});
  const secrets = [env, ...settings].flatMap(namedSecrets);
  const { stdout } = await runProgram(program, [command], {
    env,
    input: JSON.stringify({ apiVersion: API, command, ...body }),
    outputLimit: OUTPUT_LIMIT,
    limitMs,
    secrets,
    doing: `${command} by the provider ${name}, ${program}`,
    signal,
  });
  const wrong = (what: string): CurlewError => failed(provider, command, `its answer is not one of ${API}: ${what}`);
  const read = convert(schema, parseText(stdout, shallowJson, wrong));
  if ('value' in read) return read.value;
  throw wrong(read.problems[0].message);
}

/** The values below such a name, at any depth. */
function namedSecrets(value: unknown): readonly Secret[] {
  if (Array.isArray(value)) return value.flatMap(namedSecrets);
  return Object.entries(fieldsOf(value)).flatMap(([key, item]) =>
    SECRET.test(key) ? secretsIn(item) : namedSecrets(item),
  );
}

function failed({ name, program }: Provider, command: string, why: string): CurlewError {
  return new CurlewError('PROGRAM_FAILED', `${command} by the provider ${name}: ${why}`, {
    hint: `run ${program} ${command} yourself: curlew help clusters-as-data.md describes what it gets and prints`,
  });
}
