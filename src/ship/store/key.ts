/** Validation of keys. Every store checks a key once, before use. */
import { CurlewError } from '../../core/errors.ts';
import { pathProblem } from '../../core/layout.ts';

/** The folder of the store's own files. No valid key is in it. */
export const HIDDEN = '.curlew';

/** Why a key is invalid, or undefined. Names that begin with a dot are reserved for the store itself. */
export function keyProblem(key: string): string | undefined {
  const problem = pathProblem(key);
  if (problem !== undefined) return problem;
  return key.split('/').some((component) => component.startsWith('.'))
    ? 'has a component that begins with "."'
    : undefined;
}

/** Returns a valid key; throws `PACKAGE_INVALID` for any other. */
export function checkedKey(key: string, address: string): string {
  const problem = keyProblem(key);
  if (problem === undefined) return key;
  throw new CurlewError('PACKAGE_INVALID', `${address}: the key ${JSON.stringify(key.slice(0, 200))} ${problem}`);
}
