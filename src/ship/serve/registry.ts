/** A read-only registry (OCI distribution-spec 1.1: pull, list of tags, no referrers) of the images in packages. */
import { isDigest } from '../../core/digest.ts';
import { OCI_INDEX } from '../../formats/oci/manifest.ts';
import { jsonAnswer, type Answer, type Content } from './content.ts';
import { registryFailure } from './failure.ts';
import type { Images } from './images.ts';
import type { Route } from './route.ts';

type RegistryRoute = Extract<
  Route,
  { kind: 'registry-base' | 'registry-list' | 'tags' | 'manifest' | 'blob' | 'referrers' }
>;

const API: Readonly<Record<string, string>> = { 'Docker-Distribution-Api-Version': 'registry/2.0' };
/** Default and maximum number of rows in a list. */
const PAGE = 1000;
/** Packages have no signatures or SBOMs of images. The specification wants an empty index, also for unknown images. */
const NO_REFERRERS: Answer = {
  ...jsonAnswer(200, { schemaVersion: 2, mediaType: OCI_INDEX, manifests: [] }, API),
  type: OCI_INDEX,
};

interface RegistryRequest {
  readonly query: URLSearchParams;
  /** The path before `/v2` in addresses of clients. */
  readonly root: string;
  readonly images: Images;
}

export async function registryAnswer(route: RegistryRoute, { query, root, images }: RegistryRequest): Promise<Answer> {
  if (route.kind === 'registry-base') return jsonAnswer(200, {}, API);
  if (route.kind === 'referrers') return isDigest(route.reference) ? NO_REFERRERS : badDigest();
  const table = await images.table();
  if (route.kind === 'registry-list') {
    const names = table.repositories.map(({ name }) => name);
    return listAnswer(`${root}/v2/_catalog`, names, query, (repositories) => ({ repositories }));
  }
  const { name, reference } = route;
  const repository = table.find(name, query.get('ns') ?? undefined);
  if (repository === undefined) return registryFailure(404, 'NAME_UNKNOWN', `unknown image ${name}`);
  switch (route.kind) {
    case 'tags': {
      const tags = [...repository.tags.keys()].toSorted();
      return listAnswer(`${root}/v2/${name}/tags/list`, tags, query, (page) => ({ name, tags: page }));
    }
    case 'manifest': {
      // No tag has a colon.
      if (reference.includes(':') && !isDigest(reference)) return badDigest();
      const manifest = await images.manifest(repository, reference);
      const missing = `${name} does not have ${reference}`;
      return manifest === undefined ? registryFailure(404, 'MANIFEST_UNKNOWN', missing) : withApi(manifest);
    }
    case 'blob': {
      if (!isDigest(reference)) return badDigest();
      const blob = await images.blob(repository, reference);
      const missing = `${name} does not have the blob ${reference}`;
      return blob === undefined ? registryFailure(404, 'BLOB_UNKNOWN', missing) : withApi(blob);
    }
  }
}

function badDigest(): Answer {
  return registryFailure(400, 'DIGEST_INVALID', 'not a digest: write sha256: and 64 hexadecimal digits in lower case');
}

function withApi(content: Content): Answer {
  return { kind: 'content', content: { ...content, headers: { ...content.headers, ...API } } };
}

/** A page of names, with a link to the next one. */
function listAnswer(
  path: string,
  names: readonly string[],
  query: URLSearchParams,
  format: (page: readonly string[]) => unknown,
): Answer {
  const limit = query.get('n');
  if (limit !== null && !/^\d{1,9}$/.test(limit)) {
    return registryFailure(400, 'PAGINATION_NUMBER_INVALID', 'n must be a number');
  }
  const last = query.get('last') ?? '';
  const rest = names.filter((name) => name > last);
  const count = Math.min(limit === null ? PAGE : Number(limit), PAGE);
  const page = rest.slice(0, count);
  const end = page.at(-1);
  const link: Readonly<Record<string, string>> =
    end === undefined || page.length === rest.length
      ? {}
      : { Link: `<${path}?n=${count}&last=${encodeURIComponent(end)}>; rel="next"` };
  return jsonAnswer(200, format(page), { ...API, ...link });
}
