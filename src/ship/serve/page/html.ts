/** HTML as text that is escaped in one place. Pure. */
import { visible } from '../../../core/diagnostic.ts';

/** Markup: made by {@link html} only, so that no other text gets into a page without being escaped. */
class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export type Html = Markup;
type Value = string | number | false | undefined | Html | readonly Value[];

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/**
 * A template of markup. Values are escaped unless they are markup; lists are joined, and false and undefined are nothing.
 * Control characters and those that change the direction of text are made visible. Attributes must be in double quotes.
 */
export function html(parts: TemplateStringsArray, ...values: readonly Value[]): Html {
  return new Markup(parts.reduce((text, part, at) => `${text}${markupOf(values[at - 1])}${part}`));
}

function markupOf(value: Value): string {
  if (value === undefined || value === false) return '';
  if (value instanceof Markup) return value.text;
  if (typeof value === 'object') return value.map(markupOf).join('');
  const lines = String(value).split('\n').map(visible);
  return lines.join('\n').replaceAll(/[&<>"']/g, (char) => ENTITIES[char] ?? '');
}
