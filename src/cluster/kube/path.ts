/** API paths whose inserted values remain single segments. */
import { CurlewError } from '../../core/errors.ts';

/** Created only by {@link apiPath}. */
export type ApiPath = string & { readonly apiPath: true };

/**
 * An API path with its query: ``apiPath`/api/v1/namespaces/${namespace}/pods?limit=${50}` ``. Encoding alone does not keep a
 * value in one segment, since the API server decodes the path before it splits it: `CLUSTER_FAILED` for values that cannot be
 * object names (Kubernetes: path.IsValidPathSegmentName).
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
