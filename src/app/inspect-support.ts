/** Reads what a support bundle says: what is missing, and the verdicts of its checks. */
import { resolve } from 'node:path';
import { useCase } from '../core/request.ts';
import { INSPECT } from '../requests/archive.ts';
import { readSupportBundle } from '../runtime/support/read-bundle.ts';
import type { SupportIndex } from '../runtime/support/support-index.ts';

export interface InspectedSupport {
  readonly path: string;
  readonly support: SupportIndex;
}

/** Undefined for a file that is no support bundle. */
export const inspectSupport = useCase(
  INSPECT,
  async ({ path }, { cwd, signal }): Promise<InspectedSupport | undefined> => {
    const support = await readSupportBundle(resolve(cwd, path), { signal });
    return support && { path, support };
  },
);
