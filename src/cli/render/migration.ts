/** Renders the result of `curlew import kurl`, most important findings first, wrapped to the screen. */
import { visible } from '../../core/diagnostic.ts';
import { compareVersions } from '../../core/ref.ts';
import type { Finding, Grade } from '../../kurl/finding.ts';
import type { MigratedAddon, Migration } from '../../kurl/migrate.ts';
import { columns, screen, wrap } from './columns.ts';
import type { Paint } from './paint.ts';

const MAX_LISTED = 6;

/** A finding with all add-ons that it applies to. */
interface Group {
  readonly finding: Finding;
  readonly addons: readonly MigratedAddon[];
}

const HEADLINES: Readonly<Record<Grade, string>> = {
  missing: 'Missing: fix before the migration',
  differs: 'Differs: works, but not exactly as with kURL',
  note: 'Notes',
};

/** `notes`: whether to show notes. */
export function renderMigration({ addons, findings }: Migration, notes: boolean, paint: Paint): readonly string[] {
  const groups = grouped(addons, findings);
  const lines: string[] = [];
  const grades: readonly Grade[] = notes ? ['missing', 'differs', 'note'] : ['missing', 'differs'];
  for (const grade of grades) {
    const own = groups.filter(({ finding }) => finding.grade === grade);
    if (own.length === 0) continue;
    const headline = HEADLINES[grade];
    const color = { missing: paint.error, differs: paint.warning, note: paint.info }[grade];
    lines.push(color(headline), ...own.flatMap((group) => renderGroup(group, paint)), '');
  }
  if (addons.length > 0) lines.push(...renderTable(addons), '');
  return lines;
}

/** Findings about the repository first, then those with the most add-ons. */
function grouped(addons: readonly MigratedAddon[], findings: readonly Finding[]): readonly Group[] {
  const groups = new Map<string, { finding: Finding; addons: MigratedAddon[] }>();
  for (const addon of addons) {
    for (const finding of addon.findings) {
      const { grade, kind, subject, message } = finding;
      const key = JSON.stringify([grade, kind, subject, message]);
      const group = groups.get(key) ?? { finding, addons: [] };
      if (group.addons.at(-1) !== addon) group.addons.push(addon);
      groups.set(key, group);
    }
  }
  const own = [...groups.values()].toSorted((a, b) => b.addons.length - a.addons.length);
  return [...findings.map((finding) => ({ finding, addons: [] })), ...own];
}

function renderGroup({ finding, addons }: Group, paint: Paint): readonly string[] {
  const { kind, subject, message, hint, place } = finding;
  const indented = (text: string): readonly string[] =>
    wrap(visible(text), screen.columns - 4).map((line) => `    ${line}`);
  const where = `${visible(place.file)}:${place.line}`;
  return [
    ...wrap(`${kind} ${visible(subject)}`, screen.columns - 2).map((line) => `  ${paint.strong(line)}`),
    ...indented(message),
    ...(hint === undefined ? [] : indented(`hint: ${hint}`)),
    ...indented(addons.length === 0 ? `at ${where}` : `in ${named(addons)}; first at ${where}`),
  ];
}

function named(addons: readonly MigratedAddon[]): string {
  const byName = new Map<string, string[]>();
  for (const { name, version } of addons) byName.set(name, [...(byName.get(name) ?? []), version]);
  const names = [...byName].map(([name, versions]) => {
    const [first, second] = versions.toSorted((a, b) => compareVersions(b, a));
    return second === undefined ? `${name} ${first ?? ''}` : `${name} (${versions.length} versions to ${first ?? ''})`;
  });
  const more = names.length - MAX_LISTED;
  return `${names.slice(0, MAX_LISTED).join(', ')}${more > 0 ? ` and ${more} more add-ons` : ''}`;
}

function renderTable(addons: readonly MigratedAddon[]): readonly string[] {
  const byName = new Map<string, MigratedAddon[]>();
  for (const addon of addons) {
    const key = addon.tree === 'addons' ? addon.name : `packages/${addon.name}`;
    byName.set(key, [...(byName.get(key) ?? []), addon]);
  }
  const rows = [...byName].map(([name, versions]) => {
    const of = (verdict: MigratedAddon['verdict']): string =>
      String(versions.filter((one) => one.verdict === verdict).length);
    return [name, String(versions.length), of('works'), of('differs'), of('missing')];
  });
  return columns([['add-on', 'versions', 'work', 'differ', 'incomplete'], ...rows]).map((line) =>
    line.slice(0, screen.columns),
  );
}
