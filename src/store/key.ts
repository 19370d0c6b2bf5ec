/** Keys are checked once, on their way into a store. */
import { CurlewError } from '../core/errors.ts';
import { pathProblem } from '../core/layout.ts';

/** The tree of the store's own files, which no key can reach. */
export const HIDDEN = '.curlew';

/** What is wrong with a key, or undefined. Names that begin with a dot belong to the store itself. */
export function keyProblem(key: string): string | undefined {
  const problem = pathProblem(key);
  if (problem !== undefined) return problem;
  return key.split('/').some((component) => component.startsWith('.'))
    ? 'has a component that begins with "."'
    : undefined;
}

/** For an object that is larger than whoever reads it can take. */
export function tooLarge(address: string, key: string, limit: number): CurlewError {
  return new CurlewError('PACKAGE_INVALID', `${address}: ${key} is larger than ${limit} bytes`);
}

/** The key itself if a store may use it. */
export function checkedKey(key: string, address: string): string {
  const problem = keyProblem(key);
  if (problem === undefined) return key;
  throw new CurlewError('PACKAGE_INVALID', `${address}: the key ${JSON.stringify(key.slice(0, 200))} ${problem}`);
}
