/** Whether values from a facts file have the shapes that collectors promise. Pure. */
import { isObject } from '../../core/json.ts';

export type ShapeWord = 'text' | 'number' | 'yesno' | 'texts';
export type Shape = Readonly<Record<string, ShapeWord>>;

/** An object with all of these fields; others do no harm. */
export function hasShape(value: unknown, shape: Shape): boolean {
  return (
    isObject(value) &&
    Object.entries(shape).every(([name, word]) => Object.hasOwn(value, name) && fits(value[name], word))
  );
}

function fits(value: unknown, word: ShapeWord): boolean {
  if (word === 'text') return typeof value === 'string';
  if (word === 'number') return typeof value === 'number' && Number.isFinite(value);
  if (word === 'yesno') return typeof value === 'boolean';
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

export function isListOf(value: unknown, shape: Shape): boolean {
  return Array.isArray(value) && value.every((item) => hasShape(item, shape));
}

export function isMapOf(value: unknown, isEntry: (entry: unknown) => boolean): boolean {
  return isObject(value) && Object.values(value).every(isEntry);
}
