/** A planned or written bundle for people. */
import type { PlanSummary } from '../../bundle/plan.ts';
import { formatBytes } from './units.ts';

/** `file`: where it was written; undefined for a plan alone. */
export function renderBundle(
  file: string | undefined,
  { release, packages, size, fresh, linked, ranges }: PlanSummary,
): string {
  const lines = packages.map(({ name, version, requested, because, size: bytes }) => {
    const why = because === 'exact' ? '' : `, ${because === requested ? because : `${requested}: ${because}`}`;
    return `${name} ${version} (${formatBytes(bytes)}${why})`;
  });
  if (file === undefined) {
    lines.push(...ranges.map(({ key, offset, length }) => `copy ${length} bytes of ${key} from ${offset}`));
  }
  const saved = linked === 0 ? '' : `, ${formatBytes(linked)} there once instead of twice`;
  const made = `${formatBytes(size)} from release ${release}, ${formatBytes(fresh)} of it new${saved}`;
  lines.push(file === undefined ? `would be ${made}` : `${file === '-' ? 'standard output' : file}: ${made}`);
  return lines.join('\n');
}
