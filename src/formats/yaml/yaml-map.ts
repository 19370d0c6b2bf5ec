/** Whether a text is a map in YAML. Pure. */
import { isObject } from '../../core/json.ts';
import { readYaml } from './yaml.ts';

/** Why a text, such as a setting, is no map in YAML; undefined for one, and for a text without content. */
export function mapProblem(text: string): string | undefined {
  const { value, diagnostics } = readYaml('', text);
  const error = diagnostics.find(({ severity }) => severity === 'error');
  if (error !== undefined) return `line ${error.place.line}: ${error.message}`;
  return value === undefined || value === null || isObject(value) ? undefined : 'it is not a map';
}
