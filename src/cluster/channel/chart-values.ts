/** The values of a chart for one cluster: their texts are Go templates. Pure. */
import { CurlewError } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { Budget } from '../../formats/go-template/budget.ts';
import { TemplateProblem } from '../../formats/go-template/lex.ts';
import { renderText } from '../../formats/go-template/render.ts';
import type { ValueMap } from '../../formats/go-template/values.ts';
import { entryTitle, type Chart, type Entry } from './channel.ts';
import type { Triple } from './range.ts';

export interface ChartCluster {
  /** Address of its API server. */
  readonly server: string;
  /** `v1.31.2` */
  readonly version: string;
  readonly kubernetes: Triple;
}

/** `MANIFEST_INVALID` with the path of a value that cannot be rendered, or that uses a name that does not exist. */
export function chartValues(
  { values }: Pick<Chart, 'values'>,
  entry: Pick<Entry, 'name' | 'namespace' | 'version' | 'id'>,
  { server, version, kubernetes: [major, minor] }: ChartCluster,
): Readonly<Record<string, unknown>> {
  const data: ValueMap = {
    Cluster: { server, kubernetes: { version, major, minor } },
    Addon: { name: entry.name, namespace: entry.namespace, version: entry.version ?? '' },
  };
  const budget = new Budget();
  const render = (value: unknown, path: string): unknown => {
    if (Array.isArray(value)) return value.map((item, at) => render(item, `${path}[${at}]`));
    if (isObject(value)) {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, render(item, `${path}.${key}`)]));
    }
    if (typeof value !== 'string') return value;
    try {
      return renderText(value, data, { strict: 'nested', budget });
    } catch (error) {
      // Whatever a template leads to concerns only its add-on.
      const { message, hint } = error instanceof TemplateProblem ? error : { message: String(error), hint: undefined };
      const what = `cannot render the values of ${entryTitle(entry)}: ${path.slice(1)}: ${message}`;
      throw new CurlewError('MANIFEST_INVALID', what, { hint: hint ?? 'correct the value in the channel' });
    }
  };
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, render(value, `.${key}`)]));
}
