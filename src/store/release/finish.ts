/** The end of a release, in the order that keeps readers safe: catalogue, its signature, `VERSION`, and who says so. */
import { CATALOGUE_LIMIT, formatCatalogue, type Catalogue } from '../../core/catalogue.ts';
import { CurlewError } from '../../core/errors.ts';
import { storeKey } from '../../core/layout.ts';
import { currentRelease, type CurrentRelease } from '../catalogue.ts';
import type { Store } from '../store.ts';
import { withStoredExternal } from './offered.ts';
import { signCatalogue, signCurrent, type Signer } from './sign-release.ts';
import { formatAddons, formatSupportedVersions } from './catalogue.ts';

interface Cancellable {
  readonly signal: AbortSignal;
}

export interface FinishOptions extends Cancellable {
  /** The release that is current when this begins. */
  readonly current: CurrentRelease | undefined;
  /** Undefined: nothing is signed. */
  readonly signer?: Signer | undefined;
  /** What lies beside the catalogue as `inputs.json`. */
  readonly inputs: Uint8Array | undefined;
}

/** Makes a release whose packages are all there the current one. */
export async function finishRelease(
  store: Store,
  catalogue: Catalogue,
  { current, signer, inputs, signal }: FinishOptions,
): Promise<void> {
  const { release } = catalogue;
  await writeCatalogue(store, catalogue, { signal });
  const texts = { release, catalogue: Buffer.from(formatCatalogue(catalogue)), inputs };
  if (signer !== undefined) await signCatalogue(store, texts, signer, { signal });
  await writeVersion(store, release, current, { signal });
  if (signer !== undefined) await signCurrent(store, texts, signer, { signal });
}

/**
 * Writes the catalogue, then the two files for kURL's readers. A catalogue of the release with other content is
 * `STORE_CONFLICT`. All packages must be there already.
 */
async function writeCatalogue(store: Store, catalogue: Catalogue, { signal }: Cancellable): Promise<void> {
  const { release } = catalogue;
  const key = storeKey.catalogue(release);
  const text = Buffer.from(formatCatalogue(catalogue));
  try {
    await store.put(key, text, { ifNoneMatch: '*', signal });
  } catch (error) {
    if (!(error instanceof CurlewError) || error.code !== 'STORE_CONFLICT') throw error;
    if (!(await holds(store, key, text, signal))) {
      throw new CurlewError('STORE_CONFLICT', `${store.address}: ${release} was published with other content`, {
        hint: 'a release never changes: choose another release string',
        cause: error,
      });
    }
    await writeGenerated(store, catalogue, { signal });
    return;
  }
  await writeGenerated(store, catalogue, { signal });
}

/** Writes the two files for kURL's readers where they differ. */
export async function writeGenerated(store: Store, catalogue: Catalogue, { signal }: Cancellable): Promise<void> {
  const { release } = catalogue;
  await writeSupportedVersions(store, storeKey.supportedVersions(release), catalogue, { signal });
  await writeWhereOther(store, storeKey.addons(release), formatAddons(catalogue), signal);
}

/** Writes a list of the versions that a release offers, external ones too, where it differs. */
export async function writeSupportedVersions(
  store: Store,
  key: string,
  catalogue: Catalogue,
  { signal }: Cancellable,
): Promise<void> {
  const offered = await withStoredExternal(store, catalogue, { signal });
  await writeWhereOther(store, key, formatSupportedVersions(offered), signal);
}

async function writeWhereOther(store: Store, key: string, content: string, signal: AbortSignal): Promise<void> {
  const data = Buffer.from(content);
  if (!(await holds(store, key, data, signal))) await store.put(key, data, { signal });
}

/** True when the store has these bytes under the key. */
export async function holds(store: Store, key: string, data: Uint8Array, signal: AbortSignal): Promise<boolean> {
  const found = await store.read(key, { limit: CATALOGUE_LIMIT, signal });
  return found !== undefined && Buffer.compare(found.data, data) === 0;
}

/** Makes the release current if `current` still is; somebody else who was faster is `STORE_CONFLICT`. */
async function writeVersion(
  store: Store,
  release: string,
  current: CurrentRelease | undefined,
  { signal }: Cancellable,
): Promise<void> {
  if (current?.release === release) return;
  try {
    const condition = current === undefined ? ({ ifNoneMatch: '*' } as const) : { ifMatch: current.etag };
    await store.put(storeKey.version, Buffer.from(release), { ...condition, signal });
  } catch (error) {
    if (!(error instanceof CurlewError) || error.code !== 'STORE_CONFLICT') throw error;
    const now = await currentRelease(store, { signal });
    if (now?.release === release) return;
    throw new CurlewError(
      'STORE_CONFLICT',
      `${store.address}: another publisher made ${now?.release} current meanwhile`,
      {
        hint: 'run the same command again with another release string to publish on top of it',
        cause: error,
      },
    );
  }
}
