/**
 * `inputs.json` of a release: the build inputs of each package, so that the next publisher, on any machine, can detect
 * unchanged packages. The builder defines the content of an entry. An entry applies only to the package whose digest it
 * contains, so a missing, outdated or wrong file causes extra builds and nothing else.
 */
import * as v from 'valibot';
import type { Cancellable } from '../../core/cancellable.ts';
import { isRelease } from '../../core/catalog.ts';
import { canonicalJson, type Digest } from '../../core/digest.ts';
import { unless } from '../../core/errors.ts';
import { jsonIn } from '../../core/json.ts';
import { storeKey } from '../../core/layout.ts';
import { byKey, digest, fits } from '../../core/schema.ts';
import type { Store } from '../store/store.ts';

export interface RecordedPackage {
  /** Digest of the package that was built from the inputs. */
  readonly digest: Digest;
  /** The first release with this package. */
  readonly since: string;
  /** Git commit in the metadata of the package; undefined if not recorded. */
  readonly commit?: string | undefined;
  readonly inputs: unknown;
}

/** By file name. */
export type RecordedPackages = ReadonlyMap<string, RecordedPackage>;

/** True for a git commit in hex, full or abbreviated. */
export function isCommit(text: string): boolean {
  return /^[0-9a-f]{7,64}$/.test(text);
}

const FORMAT = 1;
const LIMIT = 64 << 20;

/** Canonical JSON of an `inputs.json`. */
export function formatRecorded(packages: RecordedPackages): string {
  return `${canonicalJson({ format: FORMAT, packages: Object.fromEntries(packages) })}\n`;
}

const recorded = v.object({ format: v.literal(FORMAT), packages: byKey(v.unknown()) });
const recordedPackage = v.object({
  digest,
  since: v.pipe(v.string(), v.check(isRelease)),
  commit: v.optional(v.unknown()),
  inputs: v.optional(v.unknown()),
});

/** Parses an `inputs.json`; skips invalid entries. */
export function parseRecorded(text: string): RecordedPackages {
  const value = jsonIn(text);
  if (!fits(recorded, value)) return new Map();
  const rows = Object.entries(value.packages).flatMap(([file, row]) => {
    if (!fits(recordedPackage, row)) return [];
    const { digest: built, since, inputs, commit } = row;
    const noted = typeof commit === 'string' && isCommit(commit) ? { commit } : {};
    return [[file, { digest: built, since, inputs, ...noted }] as const];
  });
  return new Map(rows);
}

/** The recorded inputs of a release; empty if `inputs.json` is missing or damaged. */
export async function readRecorded(store: Store, release: string, { signal }: Cancellable): Promise<RecordedPackages> {
  const reading = store.read(storeKey.inputs(release), { limit: LIMIT, signal }).then((stored) => {
    return stored && parseRecorded(Buffer.from(stored.data).toString());
  });
  return (await unless(['PACKAGE_INVALID'], reading)) ?? new Map();
}
