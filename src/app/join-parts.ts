/** Joins or checks the parts of a bundle. */
import { dirname, join, resolve } from 'node:path';
import { checkParts, joinedBytes, joinParts, type JoinOptions } from '../ship/bundle/parts/join-parts.ts';
import { canceledOr, CurlewError, errorAbout, redact } from '../core/errors.ts';
import { isHeadPath } from '../core/parts.ts';
import { isAddress } from '../steps/archives/open-anywhere.ts';
import { verifyWhole, requireSignedFile } from '../steps/archives/verify-whole.ts';
import type { Context } from '../core/context.ts';
import { checkedIndex } from '../steps/sources/install-source.ts';
import { trustOf, type Trust } from '../steps/open/trust.ts';
import { CHECK_PARTS, JOIN_TO_FILE, type BundlePartsRequest } from '../requests/bundle.ts';
import { requireValid, useCase } from '../core/request.ts';

interface CheckedPart {
  readonly name: string;
  readonly size: number;
  /** Undefined if it was not found. */
  readonly path: string | undefined;
  /** Undefined for a valid part. */
  readonly problem: string | undefined;
}

export interface CheckedParts {
  readonly kind: 'checked';
  readonly parts: readonly CheckedPart[];
  /** The public key whose signature holds; undefined where none was asked for. */
  readonly signedBy: string | undefined;
}

export interface JoinedParts {
  readonly kind: 'joined';
  readonly file: string;
  readonly size: number;
  readonly parts: number;
  /** The public key whose signature holds; undefined where none was asked for. */
  readonly signedBy: string | undefined;
}

/** Checks every part and writes nothing. */
export const checkBundleParts = useCase(CHECK_PARTS, async (request, context): Promise<CheckedParts> => {
  const { head, place, signedBy } = await partsOf(request, context);
  const foundParts = await checkParts(head, place);
  const parts = foundParts.map(({ part: { name, size }, path, problem }) => ({ name, size, path, problem }));
  return { kind: 'checked', parts, signedBy: signedBy() };
});

/** The bytes of the whole, in order. Checks all parts before the first byte. */
export async function* readBundleParts(
  request: BundlePartsRequest,
  context: Context,
): AsyncGenerator<Uint8Array, void, undefined> {
  requireValid(CHECK_PARTS, request);
  const { head, place } = await partsOf(request, context);
  try {
    yield* joinedBytes(head, place);
  } catch (error) {
    throw canceledOr(error, context.signal, 'what was written is incomplete');
  }
}

/** The file gets its name when it is complete. On a terminal, asks for media with missing parts. */
export const joinBundleParts = useCase(JOIN_TO_FILE, async (request, context): Promise<JoinedParts> => {
  const { head, place, signedBy } = await partsOf(request, context);
  const file = resolve(context.cwd, request.output);
  const next = askerFor(context, place.folders);
  const joined = await joinParts(head, file, { ...place, force: request.force === true, next });
  return { kind: 'joined', file, size: joined.size, parts: joined.parts.length, signedBy: signedBy() };
});

/** Opens the parts of a request. */
async function partsOf(request: BundlePartsRequest, context: Context) {
  const { cwd, report, signal } = context;
  const { head: file, folders = [] } = request;
  const usage = errorAbout('USAGE', `curlew join-parts`, 'curlew join-parts NAME.parts.json -o FILE');
  if (isAddress(file)) throw usage(`${redact(file)} is not a file: download it and the parts first, with curlew pull`);
  if (!isHeadPath(file))
    throw usage(`${file} is not a head file: its name is that of the bundle followed by .parts.json`);
  const head = resolve(cwd, file);
  const places = [...new Set([dirname(head), ...folders.map((folder) => resolve(cwd, folder))])];
  const { verify, signedBy } = verifierOf(await trustOf(request, context), head, context);
  return { head, place: { folders: places, verify, report, signal }, signedBy };
}

interface Verifier {
  readonly verify: JoinOptions['verify'];
  /** Set after `verify` has checked all bytes. */
  readonly signedBy: () => string | undefined;
}

/** Verifies the whole as `curlew verify` does. */
function verifierOf(trust: Trust | undefined, path: string, context: Context): Verifier {
  let signedBy: string | undefined;
  if (trust === undefined) return { verify: undefined, signedBy: () => undefined };
  const verify: JoinOptions['verify'] = async (whole, { name }, what) => {
    const { signed } = await checkedIndex(whole, join(dirname(path), name), { ...context, trust });
    if (what === 'contents' || signed === undefined) return;
    // A signature of only the contents does not cover the bytes, so they are verified against the contents.
    if (signed.statement === undefined) await verifyWhole(whole, path, context);
    else await requireSignedFile(whole, signed.statement.file, context);
    signedBy = signed.by;
  };
  return { verify, signedBy: () => signedBy };
}

/** Undefined without a terminal. */
function askerFor({ ask, signal }: Context, folders: readonly string[]): JoinOptions['next'] {
  if (ask === undefined) return undefined;
  return async (missing, problem) => {
    const [first] = missing;
    const others = missing.length > 1 ? `, and ${missing.length - 1} more` : '';
    const lines = [
      ...(problem === undefined ? [] : [problem]),
      `${first?.name ?? ''} is missing${others}.`,
      `Mount the next medium so that its parts are in ${folders.join(' or ')}.`,
      'Press Enter to continue, or enter anything else to stop:',
    ];
    const answer = await ask({ addon: 'join-parts', kind: 'text', lines }, { signal });
    if (answer?.trim() === '') return;
    throw new CurlewError('CANCELLED', `${first?.name ?? ''} is missing${others}: nothing was joined`);
  };
}
