/** Options that exclude each other. */
import { CurlewError } from '../core/errors.ts';

/** `USAGE` for a preview that is also to be carried out, by `--yes` or the option `change`. */
export function requireOneOf(
  { yes, dryRun }: { readonly yes: boolean; readonly dryRun: boolean },
  command: string,
  change = '--yes',
): void {
  if (!yes || !dryRun) return;
  throw new CurlewError('USAGE', `curlew ${command}: ${change} and --dry-run cannot be used together`, {
    hint: `--dry-run shows what would change, ${change} changes it`,
  });
}
