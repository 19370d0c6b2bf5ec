/** Messages of outcomes that are templates with plain `{{ … }}`. Pure. */
import { AnalyzerProblem } from './analyzer.ts';
import { TemplateProblem } from '../../formats/go-template/lex.ts';
import { renderText } from '../../formats/go-template/render.ts';
import type { ValueMap } from '../../formats/go-template/values.ts';

/** Renders the template. Throws {@link AnalyzerProblem} if it is invalid. */
export function messageOf(text: string, data: ValueMap): string {
  try {
    return renderText(text, data);
  } catch (error) {
    if (error instanceof TemplateProblem) throw new AnalyzerProblem(`${JSON.stringify(text)}: ${error.message}`);
    throw error;
  }
}
