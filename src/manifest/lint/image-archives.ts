/** Reads which images the archives next to a Manifest contain. */
import { join } from 'node:path';
import type { AddonListing } from '../read-addon.ts';
import { outsideProblem } from '../within-repository.ts';
import type { ArchiveNames } from './image-use.ts';

/** Limit of archives that are read, which no add-on has. */
const MAX_ARCHIVES = 500;

/** Without archives that cannot be read or are outside the repository: other rules report these. */
export async function readArchiveNames(
  { manifest, folder, root }: Pick<AddonListing, 'manifest' | 'folder' | 'root'>,
  { signal }: { readonly signal: AbortSignal },
): Promise<ArchiveNames> {
  const archives = new Set(manifest.requests.flatMap((one) => (one.kind === 'image' ? (one.archive ?? []) : [])));
  const namesByPath = new Map<string, readonly string[]>();
  if (archives.size === 0) return namesByPath;
  const { namesInArchive } = await import('../../formats/oci/read-image-archive.ts');
  for (const archive of [...archives].slice(0, MAX_ARCHIVES)) {
    const path = archive.startsWith('/') ? archive : join(folder, archive);
    if (outsideProblem(path, root) !== undefined) continue;
    const names = await namesInArchive(path, { signal });
    if (names !== undefined) namesByPath.set(archive, names);
  }
  return namesByPath;
}
