/** Paths of the API, in which what is put in stays one part. */
import { CurlewError } from '../core/errors.ts';

/** Made by {@link apiPath} alone. */
export type ApiPath = string & { readonly apiPath: true };

/**
 * A path of the API and its query: ``apiPath`/api/v1/namespaces/${namespace}/pods?limit=${50}` ``. Encoding alone does not hold a
 * name in its place, since the API server decodes the path before it splits it: `CLUSTER_FAILED` for what no object can be named
 * (Kubernetes: path.IsValidPathSegmentName).
 */
export function apiPath(texts: TemplateStringsArray, ...values: readonly (string | number)[]): ApiPath {
  let path = texts[0] ?? '';
  for (const [at, value] of values.entries()) {
    const part = String(value);
    if (!path.includes('?') && !isSegment(part)) {
      throw new CurlewError('CLUSTER_FAILED', `${JSON.stringify(part.slice(0, 80))} cannot be the name of an object`);
    }
    path += encodeURIComponent(part) + (texts[at + 1] ?? '');
  }
  return path as ApiPath;
}

function isSegment(part: string): boolean {
  return part !== '' && part !== '.' && part !== '..' && !/[/%]|\p{Surrogate}/u.test(part);
}
