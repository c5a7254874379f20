import { expect, test } from 'vitest'
import { attachmentsIn, sourceOf } from './uploads.ts'

const web = 'https://github.com'
const id = '0b2c8d1e-1111-4222-8333-444455556666'
const asset = `${web}/user-attachments/assets/${id}`
const found = (body: string, webUrl = web): string[] =>
  attachmentsIn([{ body, messageId: 'comment:7' }], 'acme/app#42', webUrl).map(({ name }) => name)

test.each([
  ['an image', `![x](${asset})`, ['image-0b2c8d1e']],
  ['an image as the page writes it today', `<img width="9" alt="x" src="${asset}" />`, ['image-0b2c8d1e']],
  ['a file', `[a](${web}/user-attachments/files/1/a%20b.txt)`, ['a b.txt']],
  ['an older file', `[a](${web}/acme/app/files/1/a.pdf)`, ['a.pdf']],
  ['an older image', `![x](${web}/acme/app/assets/12/${id})`, ['image-0b2c8d1e']],
  ['the oldest image', '![x](https://user-images.githubusercontent.com/1/2-a.png)', ['2-a.png']],
  ['an image in a quote', `> ![x](${asset})`, ['image-0b2c8d1e']],
  ['one image twice', `![x](${asset}) ![x](${asset})`, ['image-0b2c8d1e']],
  ['an image that nobody sees', `<!-- ![x](${asset}) -->`, []],
  ['an image in code', `\`![x](${asset})\`\n\n\`\`\`\n${asset}\n\`\`\``, []],
  ['an image elsewhere', `![x](https://evil.example/user-attachments/assets/${id})`, []],
  ['a host that looks like it', `![x](https://github.com.evil.example/user-attachments/assets/${id})`, []],
  [
    'a page above',
    `[x](${web}/acme/app/files/1/..) [y](${web}/acme/app/files/1/%2e%2E) [z](${web}/../x/files/1/a)`,
    [],
  ],
  ['another page of GitHub', `[x](${web}/settings/tokens) [y](${web}/acme/app/files/../../x)`, []],
])('%s', (_what, body, names) => {
  expect(found(body)).toEqual(names)
})

test('a server of one’s own has its own uploads, and no more than twenty are taken', () => {
  const own = 'https://git.example.com'
  const many = Array.from({ length: 30 }, (_, n) => `[f](${own}/user-attachments/files/${n}/f.txt)`).join(' ')
  expect(found(`${many} ![x](${asset})`, own)).toHaveLength(20)
  expect(found(many)).toEqual([])
})

test.each([
  'acme/app#42 comment:7 https://evil.example/x',
  `acme/app#42 nothing ${asset}`,
  `../x comment:7 ${asset}`,
  asset,
  '',
])('nothing else is fetched: %s', (reference) => {
  expect(sourceOf({ reference }, web)).toBeUndefined()
})
