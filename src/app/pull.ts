/** Downloads a bundle or package: resumes, and verifies bytes as they arrive. */
import { chmod, stat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { CurlewError, requireRefusal } from '../core/errors.ts';
import type { RangeSource } from '../formats/archive/entry.ts';
import { openFileSource, readIndex } from '../formats/archive/read.ts';
import { SIGNATURE_LIMIT } from '../formats/signing/signature.ts';
import { writeStateFile } from '../platform/files/state-file.ts';
import type { Pulled } from '../ship/transfer/from-place.ts';
import { createPace, planPull, pull, type PullOptions, type PullPlan } from '../ship/transfer/pull.ts';
import type { FetchPlace } from '../ship/store/places.ts';
import type { Context } from '../core/context.ts';
import { modeFor, secretsOfBundle } from '../steps/archives/private-bundle.ts';
import { objectOpener } from '../steps/open/stores.ts';
import { lazyHttp } from '../steps/open/network.ts';
import { signaturePath, trustOf } from '../steps/open/trust.ts';
import { PULL, type PullRequest } from '../requests/archive.ts';
import { useCase } from '../core/request.ts';

export interface PulledFile extends Pulled {
  /** The public key whose signature holds, where signatures were asked for. */
  readonly signedBy: string | undefined;
}

export type PlannedFile = PullPlan & Pick<PulledFile, 'signedBy'>;

const CONNECTIONS = 4;

/** The same request resumes a download. Until the file is complete, its bytes are in FILE.partial. */
export const pullFile = useCase(PULL, async (request, context): Promise<PulledFile> => {
  const { limitRate: rate, sha256, force = false, connections = CONNECTIONS } = request;
  const { report, signal } = context;
  const pace = rate === undefined ? undefined : createPace(rate, () => performance.now());
  return withPlaces(request, context, async (places, file, trust) => {
    const check = trust?.check;
    let isJudged = false;
    const isPrivate = async (source: RangeSource): Promise<boolean> => {
      isJudged = true;
      return hasSecrets(source, file, context);
    };
    const options = { sha256, check, force, isPrivate, connections, pace, report, signal };
    const pulled = await pull(places, file, options);
    if (!isJudged) await keepPrivate(file, isPrivate);
    await trust?.keep(file);
    return { ...pulled, signedBy: trust?.signedBy() };
  });
});

/** Only the content of a file says whether it is a bundle with secrets: servers may send any file. */
async function hasSecrets(source: RangeSource, file: string, context: Context): Promise<boolean> {
  const index = await readIndex(source, context).catch((error: unknown) => {
    requireRefusal(error, context.signal);
    return undefined;
  });
  if (index === undefined) return false;
  const secrets = await secretsOfBundle(source, index, context);
  return secrets.length > 0 && modeFor(secrets, basename(file), context) === 0o600;
}

/** For a file that was complete before. */
async function keepPrivate(file: string, isPrivate: (source: RangeSource) => Promise<boolean>): Promise<void> {
  await using source = await openFileSource(file);
  if (await isPrivate(source)) await chmod(file, 0o600);
}

/** Plans {@link pullFile}, and verifies the signature; writes nothing. */
export const planPullFile = useCase(PULL, async (request, context): Promise<PlannedFile> => {
  const { sha256, force = false } = request;
  const { report, signal } = context;
  return withPlaces(request, context, async (places, file, trust) => {
    const planned = await planPull(places, file, { sha256, check: trust?.check, force, report, signal });
    return { ...planned, signedBy: trust?.signedBy() };
  });
});

async function withPlaces<Result>(
  request: PullRequest,
  context: Context,
  work: (places: readonly FetchPlace[], file: string, trust: PullTrust | undefined) => Promise<Result>,
): Promise<Result> {
  const { addresses, output } = request;
  const [first = ''] = addresses;
  const file = await targetOf(output, first, context.cwd);
  await using web = lazyHttp(request, context);
  const objectAt = objectOpener(request, context, web);
  const places = [];
  for (const address of addresses) places.push(await objectAt(address));
  return await work(places, file, await trustFor(request, context));
}

/** The given file, or a file with the address's name in the given or current folder. */
async function targetOf(output: string | undefined, address: string, cwd: string): Promise<string> {
  const path = resolve(cwd, output ?? '.');
  const isFolder = (await stat(path).catch(() => undefined))?.isDirectory() === true;
  if (!isFolder && output?.endsWith('/') !== true) return path;
  return resolve(path, nameIn(address));
}

/** The last part of an address's path. */
function nameIn(address: string): string {
  const [, , url] = /^([a-z][a-z0-9+.-]*):\/\/[^/?#]*(\/[^?#]*)?/i.exec(address) ?? [
    undefined,
    undefined,
    `/${address}`,
  ];
  const path = url ?? '/';
  let name = path.slice(path.lastIndexOf('/') + 1);
  try {
    name = decodeURIComponent(name);
  } catch {
    // Not percent-encoded: used unchanged.
  }
  if (!['', '.', '..'].includes(name) && !/[/\0]/.test(name)) return name;
  throw new CurlewError('USAGE', `curlew pull: ${address} contains no file name`, {
    hint: 'specify the file to write with -o FILE',
  });
}

interface PullTrust {
  readonly check: NonNullable<PullOptions['check']>;
  /** Writes the downloaded signature next to the file. */
  readonly keep: (file: string) => Promise<void>;
  readonly signedBy: () => string | undefined;
}

/** Undefined if no signatures are required. */
async function trustFor(request: PullRequest, context: Context): Promise<PullTrust | undefined> {
  const trust = await trustOf(request, context);
  if (trust === undefined) return undefined;
  let signedBy: string | undefined;
  let signature: string | undefined;
  return {
    signedBy: () => signedBy,
    check: async (toc, { name, place: { store, key } }) => {
      const signed = await trust.check(name, toc, name, async () => {
        const stored = await store.read(signaturePath(key), { limit: SIGNATURE_LIMIT, signal: context.signal });
        signature = stored === undefined ? undefined : Buffer.from(stored.data).toString();
        return signature;
      });
      signedBy = signed.by;
    },
    keep: async (file) => {
      if (signature !== undefined) await writeStateFile(signaturePath(file), signature, 0o644);
    },
  };
}
