/**
 * Builds the site of the documentation: static pages with a search that works from a folder, without a server.
 * usage: npm run site [-- FOLDER]   (default: .curlew/site)
 */
import { resolve } from 'node:path';
import { buildSite } from './site/build.ts';

const folder = resolve(process.argv[2] ?? '.curlew/site');
const { pages, sections } = await buildSite(process.cwd(), folder);
console.log(`${folder}: ${pages} pages, ${sections} sections to search`);
