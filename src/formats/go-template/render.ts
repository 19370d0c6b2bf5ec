/** Renders templates; errors are findings with their places. Pure. */
import type { Diagnostic, Place } from '../../core/diagnostic.ts';
import { Budget } from './budget.ts';
import { evaluateTemplate, type Stretch, type Strictness } from './evaluate.ts';
import { lexTemplate, TemplateProblem, type Delimiters } from './lex.ts';
import { parseTemplate } from './parse.ts';
import type { ValueMap } from './values.ts';

/** Delimiters of actions that kURL renders; plain braces are left for Troubleshoot. */
export const KURL_DELIMITERS: Delimiters = { open: '{{kurl', close: '}}' };
const PLAIN_DELIMITERS: Delimiters = { open: '{{', close: '}}' };

const MAX_TEXT = 1 << 20;

export interface Rendered {
  /** Undefined if there is a finding. */
  readonly text: string | undefined;
  readonly diagnostics: readonly Diagnostic[];
  /** The place in the template for a place in the rendered text. */
  readonly placeOf: (place: Place) => Place;
}

export interface RenderOptions extends Delimiters {
  /** Name of the template for messages. */
  readonly file: string;
}

/** Renders a template of at most 1 MiB; stops at the first error. */
export function renderTemplate(text: string, data: ValueMap, { file, ...delimiters }: RenderOptions): Rendered {
  const same = (place: Place): Place => place;
  try {
    if (text.length > MAX_TEXT) throw new TemplateProblem(`the file is larger than ${MAX_TEXT} bytes`, 0);
    if (!text.includes(delimiters.open)) return { text, diagnostics: [], placeOf: same };
    const stretches = evaluateTemplate(parseTemplate(lexTemplate(text, delimiters)), data, {
      strict: true,
      budget: new Budget(),
    });
    const rendered = stretches.map((stretch) => stretch.text).join('');
    return { text: rendered, diagnostics: [], placeOf: (place) => placeBack(place, rendered, text, stretches) };
  } catch (error) {
    if (!(error instanceof TemplateProblem)) throw error;
    const place = placeAt(text, error.offset, 1, file);
    const { message, hint } = error;
    const finding: Diagnostic = { code: 'preflight/template', severity: 'error', message, place, hint };
    return { text: undefined, diagnostics: [finding], placeOf: same };
  }
}

function placeAt(text: string, offset: number, length: number, file: string): Place {
  const before = text.slice(0, offset);
  const line = before.split('\n').length;
  return { file, line, column: offset - before.lastIndexOf('\n'), length };
}

function placeBack(place: Place, rendered: string, template: string, stretches: readonly Stretch[]): Place {
  let offset = place.column - 1;
  for (let line = 1, at = 0; line < place.line; line += 1) {
    const end = rendered.indexOf('\n', at);
    if (end === -1) break;
    offset += end + 1 - at;
    at = end + 1;
  }
  let passed = 0;
  for (const { text, offset: origin, verbatim } of stretches) {
    if (offset < passed + text.length) {
      return placeAt(template, verbatim ? origin + offset - passed : origin, place.length, place.file);
    }
    passed += text.length;
  }
  return { ...place, line: template.split('\n').length, column: 1 };
}

/**
 * Renders a short text, such as a message; by default unknown names are empty. Texts that belong together share a budget. Throws
 * {@link TemplateProblem}.
 */
export function renderText(
  text: string,
  data: ValueMap,
  { strict = false, budget = new Budget() }: { readonly strict?: Strictness; readonly budget?: Budget } = {},
): string {
  if (!text.includes('{{')) return text;
  budget.work([text], 0);
  const stretches = evaluateTemplate(parseTemplate(lexTemplate(text, PLAIN_DELIMITERS)), data, { strict, budget });
  return stretches.map((stretch) => stretch.text).join('');
}
