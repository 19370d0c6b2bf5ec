/** References of container images, in the normal form shared by registries and node runtimes. */
import { isDigest, type Digest } from './digest.ts';

export interface ImageRef {
  /** Registry host with optional port, `docker.io` if the reference does not name one. */
  readonly registry: string;
  /** `library/nginx`, never empty. */
  readonly repository: string;
  readonly tag: string | undefined;
  readonly digest: Digest | undefined;
}

const HOST =
  /^(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?$/;
const COMPONENT = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*$/;
const TAG = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;

/**
 * Reads a reference by the grammar of github.com/distribution/reference. A first component counts as a host when it
 * has a dot or a colon or is `localhost`. No tag and no digest means the tag `latest`.
 * Returns the problem as text if it does not parse.
 */
export function parseImageRef(text: string): ImageRef | string {
  if (text.length > 512) return 'the reference is longer than 512 characters';
  const [beforeDigest = '', digest, ...more] = text.split('@');
  if (more.length > 0) return 'more than one "@"';
  if (digest !== undefined && !isDigest(digest)) return 'the part after "@" is not a sha256 digest';
  const colon = beforeDigest.lastIndexOf(':');
  const hasTag = colon > beforeDigest.lastIndexOf('/');
  const tag = hasTag ? beforeDigest.slice(colon + 1) : undefined;
  if (tag !== undefined && !TAG.test(tag)) return `"${tag.slice(0, 60)}" is not a tag`;
  const components = (hasTag ? beforeDigest.slice(0, colon) : beforeDigest).split('/');
  const [first = ''] = components;
  const named = components.length > 1 && (/[.:]/.test(first) || first === 'localhost');
  const registry = named ? first : 'docker.io';
  if (named && !HOST.test(first)) return `"${first.slice(0, 60)}" is not a registry host`;
  const path = named ? components.slice(1) : components;
  const wrong = path.find((component) => !COMPONENT.test(component));
  if (wrong !== undefined) return `"${wrong.slice(0, 60)}" is not a repository name (lower case, digits, . _ -)`;
  const short = registry === 'docker.io' && path.length === 1;
  return {
    registry: registry === 'index.docker.io' ? 'docker.io' : registry,
    repository: short ? `library/${path.join('/')}` : path.join('/'),
    tag: tag ?? (digest === undefined ? 'latest' : undefined),
    digest,
  };
}

/** The full normalized name: `docker.io/library/nginx:1.27`, with `@sha256:…` if it is pinned. */
export function formatImageRef({ registry, repository, tag, digest }: ImageRef): string {
  return `${registry}/${repository}${tag === undefined ? '' : `:${tag}`}${digest === undefined ? '' : `@${digest}`}`;
}

/**
 * The names by which a node's runtime finds an image written as `ref`: with its tag, and with its digest if it is pinned
 * (container runtimes look up `repo:tag@digest` as `repo@digest`).
 */
export function imageNames(ref: ImageRef): readonly string[] {
  const tagged = ref.tag === undefined ? [] : [formatImageRef({ ...ref, digest: undefined })];
  const pinned = ref.digest === undefined ? [] : [formatImageRef({ ...ref, tag: undefined })];
  return [...tagged, ...pinned];
}
