/** Options that exclude each other. */
import { CurlewError } from '../core/errors.ts';

/** `USAGE` for a preview that is also to be carried out. */
export function requireOneOf(
  { yes, dryRun }: { readonly yes: boolean; readonly dryRun: boolean },
  command: string,
): void {
  if (!yes || !dryRun) return;
  throw new CurlewError('USAGE', `curlew ${command}: --yes and --dry-run cannot be used together`, {
    hint: '--dry-run shows what would change, --yes changes it',
  });
}
