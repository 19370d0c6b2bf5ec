/** Messages of outcomes with plain `{{ … }}` in them. Pure. */
import { JudgeProblem } from './analyzer.ts';
import { TemplateProblem } from '../../formats/go-template/lex.ts';
import { renderText } from '../../formats/go-template/render.ts';
import type { ValueMap } from '../../formats/go-template/values.ts';

/** The text with its actions carried out; a mistake in them is a {@link JudgeProblem}. */
export function messageOf(text: string, data: ValueMap): string {
  try {
    return renderText(text, data);
  } catch (error) {
    if (error instanceof TemplateProblem) throw new JudgeProblem(`${JSON.stringify(text)}: ${error.message}`);
    throw error;
  }
}
