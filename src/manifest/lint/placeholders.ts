/** `__placeholders__` that a template's generator should have filled in. Pure. */
import { quoted } from '../rules.ts';
import type { Remark } from './spot.ts';

const PLACEHOLDER = /(?<![A-Za-z0-9_$.])__([A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)*)__(?![A-Za-z0-9_(])/g;

/** Words that other languages write so: labels of Prometheus, names of Python, options of Grafana. */
const OTHERS: ReadonlySet<string> = new Set(
  (
    'address metrics_path scheme name path param scrape_interval scrape_timeout ' +
    'file line function init main dict class doc all call enter exit del str repr len iter typename schema'
  ).split(' '),
);

/** Files that are texts of the add-on itself; in other languages the form means other things. */
const TEXTS = /(?:^|\/)[^/.]+$|\.(?:ya?ml|sh|json|conf|cfg|env|tmpl|tpl|txt|toml|ini|service)$/;

export function mayHoldPlaceholders(path: string): boolean {
  return TEXTS.test(path);
}

const MOST = 20;

/** Those that a script of hooks puts something in the place of: `s/__NAME__/` of sed, `${text//__NAME__/…}` of bash. */
export function filledPlaceholders(script: string): ReadonlySet<string> {
  return new Set([...script.matchAll(/(?:\bs|\/)([/|#,@])(__[A-Za-z][\w-]*__)\1/g)].map(([, , name = '']) => name));
}

/** The first of each placeholder, at most twenty; but those in `filled`. */
export function findPlaceholders(text: string, filled: ReadonlySet<string>): readonly Remark[] {
  if (!text.includes('__')) return [];
  const seen = new Set<string>();
  const remarks: Remark[] = [];
  for (const match of text.matchAll(PLACEHOLDER)) {
    const [whole, word = ''] = match;
    if (OTHERS.has(word.toLowerCase()) || seen.has(whole) || filled.has(whole) || word.startsWith('meta_')) continue;
    seen.add(whole);
    if (remarks.length === MOST) break;
    remarks.push({
      code: 'addon/placeholder',
      from: match.index,
      to: match.index + whole.length,
      message: `the placeholder ${quoted(whole)} was left in`,
      hint: 'put the value in its place, or let template/generate.sh do so',
    });
  }
  return remarks;
}
