/** Validates the shapes of values from a facts file. Pure. */
import { isObject } from '../../core/json.ts';

export type ShapeType = 'text' | 'number' | 'yesno' | 'texts';
export type Shape = Readonly<Record<string, ShapeType>>;

/** An object with all of these fields; others are allowed. */
export function hasShape(value: unknown, shape: Shape): boolean {
  return (
    isObject(value) &&
    Object.entries(shape).every(([name, type]) => Object.hasOwn(value, name) && fits(value[name], type))
  );
}

function fits(value: unknown, type: ShapeType): boolean {
  if (type === 'text') return typeof value === 'string';
  if (type === 'number') return typeof value === 'number' && Number.isFinite(value);
  if (type === 'yesno') return typeof value === 'boolean';
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

export function isListOf(value: unknown, shape: Shape): boolean {
  return Array.isArray(value) && value.every((item) => hasShape(item, shape));
}

export function isMapOf(value: unknown, isEntry: (entry: unknown) => boolean): boolean {
  return isObject(value) && Object.values(value).every(isEntry);
}
