/** Renders a planned or written bundle. */
import type { PlanSummary } from '../../ship/bundle/bundle-plan.ts';
import { visible } from '../../core/diagnostic.ts';
import type { PackageDifference, PlanDifference } from '../../ship/bundle/compare.ts';
import type { WrittenFiles } from '../../steps/bundle/target.ts';
import { deltaLines } from './delta.ts';
import { formatBytes } from './units.ts';

export function renderBundle(
  { file, saved: plan, difference }: WrittenFiles,
  { release, packages, beside, size, fresh, linked, contents, os, delta, ranges }: PlanSummary,
): string {
  const lines = packages.map(({ name, version, requested, because, size: bytes }) => {
    const why = because === 'exact' ? '' : `, ${because === requested ? because : `${requested}: ${because}`}`;
    return `${name} ${version} (${formatBytes(bytes)}${why})`;
  });
  lines.push(
    ...beside.map(({ name, version, size: bytes, role, because }) => {
      return `${name} ${version} (${formatBytes(bytes)}, ${role === 'asked' ? `not in the spec, ${because}` : because})`;
    }),
  );
  if (os !== undefined) lines.push(`host packages for ${os.kept.join(', ')} only: ${formatBytes(os.omitted)} omitted`);
  if (file === undefined) {
    lines.push(
      ...ranges.map(({ key, offset, length }) => {
        const from = offset === 0 ? '' : `, from ${formatBytes(offset)} on`;
        return `copy ${formatBytes(length)} of ${key}${from}`;
      }),
    );
  }
  const shared = linked === 0 ? '' : `; ${formatBytes(linked)} that packages share are in it once`;
  const { images, files, executable } = contents;
  const parts = [
    ['images', images],
    ['other files', files],
    ['the curlew for nodes', executable],
  ] as const;
  const texts = parts.flatMap(([what, bytes]) => (bytes === 0 ? [] : [`${formatBytes(bytes)} ${what}`]));
  const summary = `${formatBytes(size)} from release ${release}, ${formatBytes(fresh)} of it generated`;
  lines.push(file === undefined ? `would be ${summary}` : `${file}: ${summary}`);
  lines.push(`  ${texts.join(', ')}${shared}`);
  if (plan !== undefined) lines.push(`${plan}: the plan`);
  if (difference !== undefined) lines.push(...differenceLines(difference));
  if (delta !== undefined) lines.push(...deltaLines(delta));
  // A saved plan may contain control characters.
  return lines.map(visible).join('\n');
}

function differenceLines({
  isSame,
  size,
  release,
  systems,
  packages,
  files,
  added,
  removed,
}: PlanDifference): readonly string[] {
  if (isSame) return ['identical to the previous bundle, byte for byte'];
  const releases = release.before === release.after ? [] : [`release ${release.before} -> ${release.after}`];
  const bytes = `${formatBytes(size.before)} -> ${formatBytes(size.after)}`;
  return [
    'differences from the previous bundle:',
    ...[
      ...releases,
      ...(systems === undefined ? [] : [`host packages: ${keptText(systems.before)} -> ${keptText(systems.after)}`]),
      ...packages.map(packageLine),
      ...files.map((path) => `${path}: different bytes`),
      `${bytes}; unpacked contents: ${formatBytes(added)} added, ${formatBytes(removed)} removed`,
    ].map((line) => `  ${line}`),
  ];
}

function keptText(kept: readonly string[] | undefined): string {
  return kept === undefined ? 'all' : `${kept.join(', ')} only`;
}

function packageLine({ name, before, after, size }: PackageDifference): string {
  if (before === undefined) return `${name} ${after}: new, ${formatBytes(size.after)}`;
  if (after === undefined) return `${name} ${before}: removed, ${formatBytes(size.before)}`;
  const versions = before === after ? `${before}: different package` : `${before} -> ${after}`;
  return `${name} ${versions}, ${formatBytes(size.before)} -> ${formatBytes(size.after)}`;
}
