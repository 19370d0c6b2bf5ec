/** Imports add-ons of other publishers into a store, for kURL's readers. */
import { rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { fetchAsset, removeBodies } from '../build/assets.ts';
import { makeScratch } from '../build/cache.ts';
import { readLimited } from '../platform/files/read-limited.ts';
import { externalFile, parseOffers, type OfferedVersion } from '../ship/release/external.ts';
import { importExternal as importOffers, type ImportResult } from '../ship/release/import-external.ts';
import { openBuildPorts } from '../steps/build/build-ports.ts';
import { findStoreFor, openStoreFor } from '../steps/open/stores.ts';
import { IMPORT_EXTERNAL } from '../requests/release.ts';
import { useCase } from '../core/request.ts';

const JOBS = 4;
const LIMIT = 4 << 20;

/** An imported version never changes, except from prerelease to release. */
export const importExternal = useCase(IMPORT_EXTERNAL, async (request, context): Promise<ImportResult> => {
  const { cwd, report, signal } = context;
  const { file, to, name, dryRun = false, jobs = JOBS } = request;
  const offers = parseOffers((await readLimited(resolve(cwd, file), LIMIT)).toString(), file, name);
  const store = dryRun
    ? await findStoreFor(to, request, context)
    : await openStoreFor(to, request, context, { create: true });
  if (store === undefined) {
    const imported = ({ name: addon, version, digest }: OfferedVersion) =>
      ({ name: addon, version, sha256: digest, outcome: 'imported' }) as const;
    return { store: resolve(cwd, to), dryRun, versions: offers.map(imported) };
  }
  await using ports = await openBuildPorts([], request, context);
  let scratch: Promise<string> | undefined;
  const none = async (): Promise<ReadonlyMap<never, never>> => new Map<never, never>();
  const fetch = async (offer: OfferedVersion, within: { readonly signal: AbortSignal }) => {
    const { url: source, digest } = offer;
    const step = { kind: 'asset', fileName: externalFile(offer), source, local: false, digest } as const;
    const silent = { onBytes: () => undefined, onExpected: () => undefined };
    scratch ??= makeScratch(ports.cache);
    return fetchAsset(
      step,
      { root: cwd, scratch: await scratch, ...silent },
      { ...ports, localPayloads: none },
      within,
    );
  };
  try {
    return await importOffers(offers, { store, fetch, dryRun, jobs, report, signal });
  } finally {
    await removeBodies(ports);
    if (scratch !== undefined) await rm(await scratch, { recursive: true, force: true });
  }
});
