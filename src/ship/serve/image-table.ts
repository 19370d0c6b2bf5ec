/** The images of a release by their names in a registry. Pure. */
import { packageKey, type Catalog, type CatalogPackage } from '../../core/catalog.ts';
import type { Digest } from '../../core/digest.ts';
import { parseImageRef } from '../../core/image-ref.ts';
import { prefixOf } from '../../core/layout.ts';
import { ARCHES, compareText, type AddonTree, type Arch } from '../../core/ref.ts';

/** A package with images. */
export interface ImageHolder {
  /** Key in the store. */
  readonly key: string;
  /** Prefix of its entries. */
  readonly prefix: string;
  readonly arch: Arch;
}

export interface TaggedManifest {
  readonly arch: Arch;
  readonly digest: Digest;
}

export interface ImageRepo {
  /** With its original registry: `docker.io/library/nginx`. */
  readonly name: string;
  /** One manifest per architecture. */
  readonly tags: ReadonlyMap<string, readonly TaggedManifest[]>;
  /** Packages with each manifest. */
  readonly manifests: ReadonlyMap<Digest, readonly ImageHolder[]>;
  readonly holders: readonly ImageHolder[];
}

export interface ImageTable {
  /** Sorted by name, in UTF-16 code units. */
  readonly repositories: readonly ImageRepo[];
  /**
   * Finds a repository by full name, or by name without registry. In the latter case uses `registry`, which a client of a mirror
   * names, otherwise the only match, or that of docker.io.
   */
  readonly find: (name: string, registry: string | undefined) => ImageRepo | undefined;
}

interface Draft {
  readonly name: string;
  readonly repository: string;
  readonly tags: Map<string, TaggedManifest[]>;
  readonly manifests: Map<Digest, ImageHolder[]>;
  readonly holders: Set<ImageHolder>;
}

/** If two packages have different images with the same tag, the add-on's latest version takes precedence. */
export function imageTable(catalog: Catalog): ImageTable {
  const drafts = new Map<string, Draft>();
  for (const { holder, images } of packagesOf(catalog)) {
    for (const { reference, digest } of images) {
      const ref = parseImageRef(reference);
      if (typeof ref === 'string') continue;
      const name = `${ref.registry}/${ref.repository}`;
      const draft = drafts.get(name) ?? newDraft(name, ref.repository);
      drafts.set(name, draft);
      draft.holders.add(holder);
      draft.manifests.set(digest, [...(draft.manifests.get(digest) ?? []), holder]);
      if (ref.tag === undefined) continue;
      const tagged = draft.tags.get(ref.tag) ?? [];
      if (!tagged.some(({ arch }) => arch === holder.arch)) tagged.push({ arch: holder.arch, digest });
      draft.tags.set(ref.tag, tagged);
    }
  }
  const repositories = [...drafts.values()]
    .toSorted((a, b) => compareText(a.name, b.name))
    .map((draft) => ({ ...draft, holders: [...draft.holders] }));
  const byName = new Map(repositories.map((one) => [one.name, one]));
  return {
    repositories,
    find: (name, registry) => {
      const exact = byName.get(registry === undefined ? name : `${registry}/${name}`) ?? byName.get(name);
      if (exact !== undefined || registry !== undefined) return exact;
      const same = repositories.filter(({ repository }) => repository === name);
      return same.length === 1 ? same[0] : byName.get(`docker.io/${name}`);
    },
  };
}

function newDraft(name: string, repository: string): Draft {
  return { name, repository, tags: new Map(), manifests: new Map(), holders: new Set() };
}

function* packagesOf({ release, addons }: Catalog): Generator<{
  readonly holder: ImageHolder;
  readonly images: readonly { readonly reference: string; readonly digest: Digest }[];
}> {
  for (const { name, versions } of addons) {
    for (const { version, tree, packages } of versions) {
      for (const arch of ARCHES) {
        const listed = packages[arch];
        if (listed === undefined || listed.images.length === 0) continue;
        yield { holder: holderOf(release, { name, version, tree, arch }, listed), images: listed.images };
      }
    }
  }
}

function holderOf(
  release: string,
  ref: { readonly name: string; readonly version: string; readonly tree: AddonTree; readonly arch: Arch },
  entry: CatalogPackage,
): ImageHolder {
  return { key: packageKey(release, ref, ref.arch, entry), prefix: prefixOf(ref), arch: ref.arch };
}
