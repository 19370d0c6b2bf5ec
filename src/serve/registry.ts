/** The reading half of a registry (OCI distribution-spec 1.1: pull, list of tags), over the images in packages. */
import { isDigest } from '../core/digest.ts';
import { jsonAnswer, type Answer, type Content } from './content.ts';
import { registryFailure } from './failure.ts';
import type { Images } from './images.ts';
import type { Route } from './route.ts';

type RegistryRoute = Extract<Route, { kind: 'registry-base' | 'registry-list' | 'tags' | 'manifest' | 'blob' }>;

const API: Readonly<Record<string, string>> = { 'Docker-Distribution-Api-Version': 'registry/2.0' };
/** Rows of a list that is asked for without a limit, and the most of one that has one. */
const PAGE = 1000;

interface RegistryAsked {
  readonly query: URLSearchParams;
  /** What stands before `/v2` in the addresses that clients use. */
  readonly root: string;
  readonly images: Images;
}

export async function registryAnswer(route: RegistryRoute, { query, root, images }: RegistryAsked): Promise<Answer> {
  if (route.kind === 'registry-base') return jsonAnswer(200, {}, API);
  const table = await images.table();
  if (route.kind === 'registry-list') {
    const names = table.repositories.map(({ name }) => name);
    return listAnswer(`${root}/v2/_catalog`, names, query, (repositories) => ({ repositories }));
  }
  const { name, reference } = route;
  const repository = table.find(name, query.get('ns') ?? undefined);
  if (repository === undefined) return registryFailure(404, 'NAME_UNKNOWN', `no image ${name} is known here`);
  switch (route.kind) {
    case 'tags': {
      const tags = [...repository.tags.keys()].toSorted();
      return listAnswer(`${root}/v2/${name}/tags/list`, tags, query, (page) => ({ name, tags: page }));
    }
    case 'manifest': {
      const found = await images.manifest(repository, reference);
      const missing = `${name} has no ${reference} here`;
      return found === undefined ? registryFailure(404, 'MANIFEST_UNKNOWN', missing) : withApi(found);
    }
    case 'blob': {
      if (!isDigest(reference)) return registryFailure(400, 'DIGEST_INVALID', 'only sha256 digests are known here');
      const found = await images.blob(repository, reference);
      const missing = `${name} has no blob ${reference} here`;
      return found === undefined ? registryFailure(404, 'BLOB_UNKNOWN', missing) : withApi(found);
    }
  }
}

function withApi(content: Content): Answer {
  return { kind: 'content', content: { ...content, headers: { ...content.headers, ...API } } };
}

/** A page of names, and where the next one is. */
function listAnswer(
  path: string,
  names: readonly string[],
  query: URLSearchParams,
  format: (page: readonly string[]) => unknown,
): Answer {
  const asked = query.get('n');
  if (asked !== null && !/^\d{1,9}$/.test(asked)) {
    return registryFailure(400, 'PAGINATION_NUMBER_INVALID', 'n must be a number');
  }
  const last = query.get('last') ?? '';
  const rest = names.filter((name) => name > last);
  const most = Math.min(asked === null ? PAGE : Number(asked), PAGE);
  const page = rest.slice(0, most);
  const end = page.at(-1);
  const link: Readonly<Record<string, string>> =
    end === undefined || page.length === rest.length
      ? {}
      : { Link: `<${path}?n=${most}&last=${encodeURIComponent(end)}>; rel="next"` };
  return jsonAnswer(200, format(page), { ...API, ...link });
}
