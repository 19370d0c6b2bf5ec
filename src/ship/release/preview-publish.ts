/** Warnings and refusals of a publish, as far as they are known before its packages are built. */
import type { Reporting } from '../../core/cancellable.ts';
import { storeKey } from '../../core/layout.ts';
import type { AddonRef, Arch } from '../../core/ref.ts';
import type { Store } from '../store/store.ts';
import { makeCatalog, type ListedPackage } from './make-catalog.ts';
import type { Previous } from './previous-release.ts';
import { noneLeft, previousPackages, requireSame, requireSome } from './publish.ts';
import { noteLowerName } from './refuse-older.ts';
import { releasesToTry } from './release-name.ts';
import { noteDropped, noteLeftOut, noteReplaced } from './replaced-release.ts';
import { noteUnsigned, type Signer } from './sign-release.ts';

interface PlannedRelease extends Reporting {
  /** Undefined for a folder that does not exist yet. */
  readonly store: Store | undefined;
  readonly release: string;
  readonly previous: Previous;
  readonly channels: readonly string[];
  /** File names of packages that are built first ({@link unbuiltPackage}). */
  readonly unbuilt: ReadonlySet<string>;
  readonly signer: Signer | undefined;
  readonly makeCurrent: boolean;
}

/** Warns and fails as a publish of these packages would. Changes nothing. */
export async function previewPublish(packages: readonly ListedPackage[], planned: PlannedRelease): Promise<void> {
  const { store, release, previous, channels, unbuilt, report, signal } = planned;
  requireSome(packages);
  const catalog = makeCatalog(release, packages, new Map(), channels);
  const exists = store !== undefined && (await requireSame(release, packages, { store, channels, unbuilt, signal }));
  if (exists && unbuilt.size > 0) {
    const text = `${release} exists: the publish is refused if its builds make other content; another release string avoids that`;
    report({ type: 'note', level: 'warning', text });
  }
  noteLeftOut(catalog, report);
  noteLowerName(release, { ...planned, current: previous.current });
  const before = previousPackages(previous);
  noteReplaced(packages, before, report, unbuilt);
  noteDropped(packages, before, report);
  if (store !== undefined) await noteUnsigned(store, { ...planned, planned: true }, { report, signal });
}

const UNKNOWN = `sha256:${'0'.repeat(64)}` as const;

/** The place of a package that is not built yet: its content, dependencies and size are not known. */
export function unbuiltPackage({ name, version, tree }: AddonRef, arch: Arch): ListedPackage {
  const entry = { digest: UNKNOWN, sha256: UNKNOWN, size: 0, unpacked: 0, images: [] };
  return { name, version, arch, tree, requires: [], fulfills: [], entry };
}

/** The release string that a publish would use, judged by finished releases only. */
export async function nextRelease(
  { current }: Previous,
  { store, now, signal }: { readonly store: Store | undefined; readonly now: Date; readonly signal: AbortSignal },
): Promise<string> {
  for (const release of releasesToTry(now, current?.release)) {
    if (store === undefined || (await store.head(storeKey.catalog(release), { signal })) === undefined) return release;
  }
  throw noneLeft();
}
