/**
 * The hash that kURL's services take of lists and maps: that of the npm package object-hash, version 3, with its
 * defaults. For JSON only. Pure.
 */
import { createHash } from 'node:crypto';
import { isJsonObject, type Json } from '../formats/yaml/yaml.ts';

/** What it writes of the class of every map: plain objects have one prototype and one constructor. */
const CLASS = 'string:11:constructor:fn:string:8:[native]string:20:function-name:Object';
const PROTOTYPE = 'string:9:prototype:Undefined,string:9:__proto__:';

/** SHA-1, in hex. */
export function objectHash(value: Json): string {
  return createHash('sha1').update(hashedText(value)).digest('hex');
}

function hashedText(value: Json): string {
  // What is met again is only named, by its number: the prototype and its constructor, from the second map on.
  let met = 0;
  let prototype: number | undefined;
  const classText = (): string => {
    if (prototype !== undefined) return `${PROTOTYPE}${again(prototype)},${CLASS}${again(prototype + 1)}`;
    prototype = met;
    met += 2;
    return `${PROTOTYPE}object:3:${PROTOTYPE}Null,${CLASS}object:0:,,${CLASS}${again(prototype + 1)}`;
  };
  const textOf = (one: Json): string => {
    if (typeof one === 'string') return word(one);
    if (typeof one === 'number') return `number:${one}`;
    if (typeof one === 'boolean') return `bool:${one}`;
    met += 1;
    if (!isJsonObject(one)) return `array:${one.length}:${one.map(textOf).join('')}`;
    const keys = Object.keys(one).toSorted();
    const head = `object:${keys.length + 3}:${classText()},`;
    return head + keys.map((key) => `${word(key)}:${textOf(one[key] ?? '')},`).join('');
  };
  return textOf(value);
}

function again(number: number): string {
  return word(`[CIRCULAR:${number}]`);
}

function word(text: string): string {
  return `string:${text.length}:${text}`;
}
