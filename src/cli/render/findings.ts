/** Fewer lines for many findings. */
import { visible, type Diagnostic } from '../../core/diagnostic.ts';

/** If a rule has more different findings in one run, only their number is shown; errors are always shown. */
const MAX_SHOWN = 10;

interface Alike<Finding> {
  readonly first: Finding;
  count: number;
}

/** Groups identical findings, and counts those of rules with too many. */
export function condense<Finding extends Diagnostic>(
  found: readonly Finding[],
): {
  readonly shown: readonly Alike<Finding>[];
  readonly counted: readonly string[];
} {
  const groups = new Map<string, Alike<Finding>>();
  for (const one of found) {
    const key = JSON.stringify([one.code, one.severity, one.message, one.hint]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { first: one, count: 1 });
    else group.count += 1;
  }
  const byRule = new Map<string, Alike<Finding>[]>();
  for (const group of groups.values()) {
    const { code, severity } = group.first;
    const rule = `${severity} ${code}`;
    const same = byRule.get(rule);
    if (same === undefined) byRule.set(rule, [group]);
    else same.push(group);
  }
  const isMany = (rule: string, alike: readonly Alike<Finding>[]): boolean =>
    !rule.startsWith('error ') && alike.length > MAX_SHOWN;
  const many = [...byRule].filter(([rule, alike]) => isMany(rule, alike));
  const left = new Set(many.flatMap(([, alike]) => alike));
  return {
    shown: [...groups.values()].filter((group) => !left.has(group)),
    counted: many.map(([rule, alike]) => {
      const count = alike.reduce((sum, group) => sum + group.count, 0);
      const { file, line, column } = alike[0]?.first.place ?? { file: '', line: 1, column: 1 };
      return `${rule}: ${count} findings, the first at ${visible(file)}:${line}:${column} (--all shows them)`;
    }),
  };
}
