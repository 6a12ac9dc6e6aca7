"""Words that come in small closed sets, and the rule that keys which differ only in one of them are never the same key.

Monday and Friday, 1월 and 2월, 2023 and 2024, red and blue lie as close in a vector space as a word and its translation, so
no threshold tells them apart: these are told apart by name. A member of a set has a *value* within its *class*, and the words
for one value in five languages (English, Korean, Japanese, Chinese, Spanish) share it. Words that are far more often
something else ("may", "sun", 일 for work) are members where that can only prevent a merge, which costs no more than a hint.

Beside them stand words with two common meanings (배 is a pear, a ship and a belly): a vector has to choose one, a person may
mean the other, so that only a person's alias or the lexicon may merge them.

Lexical data and pure functions only; what a class means for a merge is decided in `merging`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from keymem_daemon.core.text import fold

__all__ = [
    "AMBIGUOUS",
    "CLASSES",
    "closed_class",
    "closed_member",
    "differ_only_in_qualifier",
    "is_ambiguous",
    "qualifiers",
]

# One class per block: a line is a value, its words separated by commas.
_TABLE: Final = """
[weekday]
monday, mon, 월요일, 월욜, 月曜日, 月曜, 星期一, 周一, 礼拜一, lunes
tuesday, tue, tues, 화요일, 화욜, 火曜日, 火曜, 星期二, 周二, 礼拜二, martes
wednesday, wed, 수요일, 수욜, 水曜日, 水曜, 星期三, 周三, 礼拜三, miércoles
thursday, thu, thurs, 목요일, 목욜, 木曜日, 木曜, 星期四, 周四, 礼拜四, jueves
friday, fri, 금요일, 금욜, 金曜日, 金曜, 星期五, 周五, 礼拜五, viernes
saturday, sat, 토요일, 토욜, 土曜日, 土曜, 星期六, 周六, 礼拜六, sábado
sunday, sun, 일요일, 일욜, 日曜日, 日曜, 星期日, 星期天, 周日, 礼拜天, domingo
weekday, 평일, 주중, 平日, 工作日
weekend, 주말, 週末, 周末, fin de semana
[month]
january, jan, 1월, 일월, 1月, 一月, enero
february, feb, 2월, 이월, 2月, 二月, febrero
march, mar, 3월, 삼월, 3月, 三月, marzo
april, apr, 4월, 사월, 4月, 四月, abril
may, 5월, 오월, 5月, 五月, mayo
june, jun, 6월, 유월, 6月, 六月, junio
july, jul, 7월, 칠월, 7月, 七月, julio
august, aug, 8월, 팔월, 8月, 八月, agosto
september, sep, sept, 9월, 구월, 9月, 九月, septiembre
october, oct, 10월, 시월, 10月, 十月, octubre
november, nov, 11월, 십일월, 11月, 十一月, noviembre
december, dec, 12월, 십이월, 12月, 十二月, diciembre
[season]
spring, 봄, 春, 春天, 春季, primavera
summer, 여름, 夏, 夏天, 夏季, verano
autumn, fall, 가을, 秋, 秋天, 秋季, otoño
winter, 겨울, 冬, 冬天, 冬季, invierno
[quarter]
q1, 1q, 1분기, 일사분기, 1사분기, 第1四半期, 第一四半期, 第一季度, first quarter, primer trimestre
q2, 2q, 2분기, 이사분기, 2사분기, 第2四半期, 第二四半期, 第二季度, second quarter, segundo trimestre
q3, 3q, 3분기, 삼사분기, 3사분기, 第3四半期, 第三四半期, 第三季度, third quarter, tercer trimestre
q4, 4q, 4분기, 사사분기, 4사분기, 第4四半期, 第四四半期, 第四季度, fourth quarter, cuarto trimestre
h1, 1h, 상반기, 上半期, 上半年, first half, primer semestre
h2, 2h, 하반기, 下半期, 下半年, second half, segundo semestre
[kinship]
mother, mom, mum, mommy, mama, 어머니, 엄마, 모친, 母, お母さん, 母親, 妈妈, 母亲, madre, mamá
father, dad, daddy, papa, 아버지, 아빠, 부친, 父, お父さん, 父親, 爸爸, 父亲, padre, papá
parents, parent, 부모, 부모님, 両親, 親, 父母, padres
brother, 형제, 남자 형제, 兄弟, hermano
older brother, elder brother, big brother, 형, 오빠, 형님, 兄, お兄さん, 哥哥, 大哥, hermano mayor
younger brother, little brother, 남동생, 弟, 弟弟, hermano menor
sister, 자매, 姉妹, 姐妹, hermana
older sister, elder sister, big sister, 누나, 언니, 누님, 姉, お姉さん, 姐姐, hermana mayor
younger sister, little sister, 여동생, 妹, 妹妹, hermana menor
sibling, siblings, 동생, 형제자매, 兄弟姉妹, 兄弟姐妹, hermanos
son, 아들, 息子, 儿子, hijo
daughter, 딸, 娘, 女儿, hija
child, children, kid, kids, 자식, 자녀, 아이, 子供, 孩子, hijos
grandmother, grandma, granny, 할머니, 조모, 祖母, おばあさん, 奶奶, abuela
maternal grandmother, 외할머니, 姥姥, 外婆, 外祖母
grandfather, grandpa, 할아버지, 조부, 祖父, おじいさん, 爷爷, abuelo
maternal grandfather, 외할아버지, 姥爷, 外公, 外祖父
grandparents, 조부모, 祖父母, abuelos
grandson, 손자, 孫息子, 孙子, nieto
granddaughter, 손녀, 孫娘, 孙女, nieta
grandchild, grandchildren, 손주, 孫, nietos
husband, 남편, 夫, 主人, 丈夫, 老公, marido, esposo
wife, 아내, 부인, 와이프, 집사람, 妻, 奥さん, 妻子, 老婆, esposa
spouse, 배우자, 配偶者, 配偶, cónyuge
uncle, 삼촌, 숙부, 외삼촌, 이모부, 고모부, 큰아버지, 작은아버지, 叔父, 伯父, おじさん, 叔叔, 舅舅, tío
aunt, auntie, 이모, 고모, 숙모, 외숙모, 큰어머니, 작은어머니, 叔母, 伯母, おばさん, 阿姨, 姑姑, 姨妈, tía
nephew, 조카, 甥, 侄子, 外甥, sobrino
niece, 조카딸, 姪, 侄女, 外甥女, sobrina
cousin, 사촌, いとこ, 従兄弟, 表哥, 表妹, 堂兄, 堂弟, primo, prima
mother-in-law, mother in law, 시어머니, 장모, 장모님, 義母, 岳母, 婆婆, suegra
father-in-law, father in law, 시아버지, 장인어른, 義父, 岳父, 公公, suegro
son-in-law, son in law, 사위, 婿, 女婿, yerno
daughter-in-law, daughter in law, 며느리, 嫁, 儿媳, nuera
brother-in-law, brother in law, 처남, 매형, 매부, 형부, 시동생, 義兄, 義弟, 姐夫, cuñado
sister-in-law, sister in law, 처제, 처형, 형수, 올케, 시누이, 義姉, 義妹, 嫂子, cuñada
boyfriend, 남자친구, 남자 친구, 남친, 彼氏, 男朋友, novio
girlfriend, 여자친구, 여자 친구, 여친, 彼女, 女朋友, novia
twin, twins, 쌍둥이, 双子, 双胞胎, gemelo, gemelos
[number]
0, zero, 영, 공, 제로, 零, 〇, cero
1, one, first, 일, 하나, 첫째, 첫 번째, 첫번째, 한, 一, ひとつ, 一つ, 第一, 最初, uno, una, primero, primera, primer
2, two, second, 이, 둘, 둘째, 두 번째, 두번째, 두, 二, ふたつ, 二つ, 两, 第二, dos, segundo, segunda
3, three, third, 삼, 셋, 셋째, 세 번째, 세번째, 세, 三, みっつ, 三つ, 第三, tres, tercero, tercera, tercer
4, four, fourth, 사, 넷, 넷째, 네 번째, 네번째, 四, よっつ, 四つ, 第四, cuatro, cuarto, cuarta
5, five, fifth, 오, 다섯, 다섯째, 다섯 번째, 五, いつつ, 五つ, 第五, cinco, quinto, quinta
6, six, sixth, 육, 여섯, 여섯째, 여섯 번째, 六, むっつ, 六つ, 第六, seis, sexto, sexta
7, seven, seventh, 칠, 일곱, 일곱째, 일곱 번째, 七, ななつ, 七つ, 第七, siete, séptimo
8, eight, eighth, 팔, 여덟, 여덟째, 여덟 번째, 八, やっつ, 八つ, 第八, ocho, octavo
9, nine, ninth, 구, 아홉, 아홉째, 아홉 번째, 九, ここのつ, 九つ, 第九, nueve, noveno
10, ten, tenth, 십, 열, 열째, 열 번째, 十, とお, 第十, diez, décimo
11, eleven, eleventh, 십일, 열하나, 十一, once
12, twelve, twelfth, dozen, 십이, 열둘, 十二, doce
13, thirteen, thirteenth, 십삼, 열셋, 十三, trece
14, fourteen, fourteenth, 십사, 열넷, 十四, catorce
15, fifteen, fifteenth, 십오, 열다섯, 十五, quince
16, sixteen, sixteenth, 십육, 十六, dieciséis
17, seventeen, seventeenth, 십칠, 十七, diecisiete
18, eighteen, eighteenth, 십팔, 十八, dieciocho
19, nineteen, nineteenth, 십구, 十九, diecinueve
20, twenty, twentieth, 이십, 스물, 스무, 二十, veinte
30, thirty, thirtieth, 삼십, 서른, 三十, treinta
40, forty, fortieth, 사십, 마흔, 四十, cuarenta
50, fifty, fiftieth, 오십, 쉰, 五十, cincuenta
60, sixty, sixtieth, 육십, 예순, 六十, sesenta
70, seventy, seventieth, 칠십, 일흔, 七十, setenta
80, eighty, eightieth, 팔십, 여든, 八十, ochenta
90, ninety, ninetieth, 구십, 아흔, 九十, noventa
100, hundred, hundredth, 백, 百, cien, ciento
1000, thousand, 천, 千, mil
10000, ten thousand, 만, 万, 萬, diez mil
1000000, million, 백만, 百万, millón
100000000, 억, 億, 亿
1000000000, billion, 십억, 十億, 十亿, mil millones
half, 절반, 반, 半分, 一半, mitad
last, final, 마지막, 최후, 最後, 最后, último, última
next, 다음, 次, 下一个, siguiente, próximo
previous, prior, 이전, 以前, 上一个, anterior
[direction]
north, northern, 북, 북쪽, 북부, 北, 北部, 北方, norte
south, southern, 남, 남쪽, 남부, 南, 南部, 南方, sur
east, eastern, 동, 동쪽, 동부, 東, 东, 東部, 东部, 东方, este
west, western, 서, 서쪽, 서부, 西, 西部, 西方, oeste
northeast, 북동쪽, 동북, 北東, 东北, noreste
northwest, 북서쪽, 서북, 北西, 西北, noroeste
southeast, 남동쪽, 동남, 南東, 东南, sureste
southwest, 남서쪽, 서남, 南西, 西南, suroeste
left, 왼쪽, 좌측, 좌, 左, 左側, 左边, izquierda
right, 오른쪽, 우측, 우, 右, 右側, 右边, derecha
center, centre, middle, central, 가운데, 중앙, 중간, 中央, 真ん中, 中间, centro, medio
up, upper, top, above, 위, 위쪽, 상단, 상, 上, 上面, arriba
down, lower, bottom, below, 아래, 아래쪽, 하단, 하, 下, 下面, abajo
front, 앞, 앞쪽, 전면, 前, 前面, delante
back, rear, behind, 뒤, 뒤쪽, 후면, 後ろ, 后面, atrás
inside, inner, indoor, 안, 안쪽, 내부, 실내, 中, 内側, 里面, dentro
outside, outer, outdoor, 밖, 바깥, 외부, 실외, 外, 外側, 外面, fuera
[colour]
red, 빨강, 빨간색, 빨간, 적색, 레드, 赤, 赤色, レッド, 红色, 红, rojo, roja
blue, 파랑, 파란색, 파란, 청색, 블루, 青, 青色, ブルー, 蓝色, 蓝, azul
green, 초록, 초록색, 녹색, 그린, 緑, 緑色, グリーン, 绿色, 绿, verde
yellow, 노랑, 노란색, 노란, 황색, 옐로, 옐로우, 黄色, イエロー, 黄, amarillo, amarilla
black, 검정, 검정색, 검은색, 검은, 흑색, 블랙, 黒, 黒色, ブラック, 黑色, 黑, negro, negra
white, 하양, 하얀색, 하얀, 흰색, 흰, 백색, 화이트, 白, 白色, ホワイト, blanco, blanca
gray, grey, 회색, 그레이, 灰色, グレー, gris
brown, 갈색, 브라운, 茶色, ブラウン, 棕色, 褐色, marrón
pink, 분홍, 분홍색, 핑크, ピンク, 桃色, 粉色, 粉红色, rosa, rosado
purple, violet, 보라, 보라색, 자주색, 퍼플, 紫, 紫色, パープル, morado, púrpura
orange, 주황, 주황색, 오렌지색, オレンジ色, 橙色, naranja
navy, 남색, 네이비, 紺色, 藏青色, azul marino
sky blue, light blue, 하늘색, 水色, 天蓝色, celeste
beige, 베이지, 베이지색, ベージュ, 米色
gold, golden, 금색, 골드, 金色, ゴールド, dorado
silver, 은색, 실버, 銀色, 银色, シルバー, plateado
turquoise, teal, 청록색, ターコイズ, 青绿色, turquesa
[size]
tiny, mini, xs, extra small, 초소형, 미니, 超小型, ミニ, 迷你, diminuto
small, s, 소, 소형, 작은, 스몰, 小, 小型, 小さい, スモール, 小的, pequeño, pequeña
medium, mid, m, 중, 중형, 미디엄, 中型, 中等, ミディアム, mediano, mediana
large, big, l, 대, 대형, 큰, 라지, 大, 大型, 大きい, ラージ, 大的, grande
xl, extra large, huge, giant, 초대형, 特大, 巨大, enorme
xxl, 2xl
nano, 나노, ナノ, 纳米
micro, 마이크로, マイクロ, 微型
macro, 매크로, マクロ, 宏观
short, 짧은, 短い, 短, corto, corta
long, 긴, 長い, 长, largo, larga
high, 높은, 高い, 高, alto, alta
low, 낮은, 低い, 低, bajo, baja
minimum, min, 최소, 最小, mínimo
maximum, max, 최대, 最大, máximo
average, mean, 평균, 平均, promedio
[age]
old, 오래된, 옛, 구형, 古い, 旧, 旧的, viejo, vieja, antiguo
new, 새, 새로운, 신형, 신규, 新しい, 新, 新的, nuevo, nueva
young, 젊은, 若い, 年轻, joven
[day]
today, 오늘, 今日, 今天, hoy
tomorrow, 내일, 明日, 明天, mañana
yesterday, 어제, 昨日, 昨天, ayer
the day before yesterday, 그저께, 그제, 一昨日, 前天, anteayer
the day after tomorrow, 모레, 明後日, 后天, pasado mañana
daily, 매일, 毎日, 每天, diario
weekly, 매주, 毎週, 每周, semanal
monthly, 매월, 매달, 毎月, 每月, mensual
yearly, annual, annually, 매년, 연간, 毎年, 每年
hourly, 매시간, 毎時, 每小时
quarterly, 분기별, 四半期ごと, 每季度, trimestral
[daypart]
dawn, 새벽, 夜明け, 黎明, amanecer
morning, 오전, 午前, 上午, am, a.m.
noon, 정오, 正午, 中午, mediodía
afternoon, 오후, 午後, 下午, pm, p.m., tarde
evening, 저녁, 夕方, 晚上
night, 밤, 夜, 夜晚, noche
midnight, 자정, 真夜中, 午夜, medianoche
[person]
i, me, my, 나, 저, 내, 제, 私, 僕, 我, yo
you, your, 너, 당신, あなた, 你, tú, usted
he, him, his, 그, 彼, 他, él
she, her, 그녀, 她, ella
we, us, our, 우리, 私たち, 我们, nosotros
they, them, their, 그들, 彼ら, 他们, ellos, ellas
man, male, men, 남자, 남성, 男, 男性, 男人, hombre, masculino
woman, female, women, 여자, 여성, 女, 女性, 女人, mujer, femenino
boy, 소년, 남자아이, 男の子, 男孩, niño
girl, 소녀, 여자아이, 女の子, 女孩, niña
[greek]
alpha, 알파, アルファ, alfa, α
beta, 베타, ベータ, β
gamma, 감마, ガンマ, γ
delta, 델타, デルタ, δ
epsilon, 엡실론, ε
omega, 오메가, オメガ, ω
[planet]
mercury, 수성, 水星, mercurio
venus, 금성, 金星
earth, 지구, 地球, tierra
mars, 화성, 火星, marte
jupiter, 목성, 木星, júpiter
saturn, 토성, 土星, saturno
uranus, 천왕성, 天王星, urano
neptune, 해왕성, 海王星, neptuno
pluto, 명왕성, 冥王星, plutón
"""


def _members() -> dict[str, tuple[str, str]]:
    members: dict[str, tuple[str, str]] = {}
    name = ""
    for line in _TABLE.strip().splitlines():
        if line.startswith("["):
            name = line.strip("[]")
            continue
        forms = [fold(form) for form in line.split(",")]
        for form in forms:
            members.setdefault(form, (name, forms[0]))
    return members


_MEMBERS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(_members())

CLASSES: Final = frozenset(name for name, _value in _MEMBERS.values())
"""Names of the classes that have words; numbers, letters and versions written in digits belong to ``number``."""

AMBIGUOUS: Final = frozenset(
    """
    배 눈 말 밤 다리 차 굴 벌 김 파 병 절 풀 점 상 장 시 도 구 면 연 공 볼 해 역 표 피 초 양 코드 포트 기사 기타 인사 의지 부자
    시장 사장 이사 연기 수도 감사 경기 경주 과거 교정 구조 기구 기상 단지 대상 도장 동기 링 매장 무기 발표 방화 부정 사기 상품 성인
    세대 수상 시계 신장 신부 양식 우수 원수 유도 의식 이상 장기 전선 전지 정기 정의 조사 주문 지방 최고 타자 통화 현상 화장 송장
    구름 치킨 배달 저장소 사상 가정 감정사 고문 공약 관리 기관 부호 사정 수정 시기 신고 유지 인상 자원 전공 전시 조정 진정 출연 행사
    export import library class spring mouse table match date bat light crane seal key note watch paper trunk ring bark bolt
    bow can case charge check chip club column conduct court cover current deck draft drill drive fair fan file fine firm fly
    ground hood iron lead letter lock mail mate mine mint mole nail net order organ palm patient pen pitch pool port post
    pound present press pupil race rest rock root row scale seal ship sink sound stable staff stage stalk state stick stock
    strike subject suit swallow tank tap term tip toast trip volume wave well yard turkey polish
    手紙 汽車 勉強 大家 娘 床 湯 丈夫 人間 放心 東西 看病
    carta copa cura llama banda
    """.split()
)
"""Folded words with two common meanings. None of them is a form of the lexicon."""

_ROMAN: Final[Mapping[str, str]] = MappingProxyType(
    {"ii": "2", "iii": "3", "iv": "4", "vi": "6", "vii": "7", "viii": "8", "ix": "9", "xi": "11", "xii": "12"}
)
_NUMERAL: Final = re.compile(r"[+-]?\d+(?:[.,:/-]\d+)*")
_COUNTED: Final = re.compile(
    r"(?:제|第)?\d+(?:[.,:/-]\d+)*(?:st|nd|rd|th|s|%|년|월|일|시|분|초|주|주차|차|번|번째|호|기|회|층|학년|반|학기|년대|월달|살|세|명|개|원|"
    r"年|月|日|時|时|分|秒|号|番|回|階|级|年级|代|度|週|周)?"
)
_VERSION: Final = re.compile(r"v(?:er(?:sion)?)?\.? ?\d+(?:\.\d+)*(?:[-.]?(?:a|b|rc|alpha|beta)\d*)?")
_TOKEN: Final = re.compile(r"\d+|[^\W\d_]+")


def closed_member(surface: str) -> tuple[str, str] | None:
    """The (class, value) of a surface that as a whole is a member of a closed class, else ``None``.

    Words for one value share it across languages; a numeral's value is the numeral.
    """
    folded = fold(surface)
    member = _MEMBERS.get(folded)
    if member is not None:
        return member
    if folded in _ROMAN:
        return "number", _ROMAN[folded]
    plain = unicodedata.normalize("NFKC", folded)
    if _NUMERAL.fullmatch(plain) or _COUNTED.fullmatch(plain) or _VERSION.fullmatch(plain):
        return "number", plain
    if len(plain) == 1 and plain.isascii() and plain.isalpha():
        return "letter", plain
    return None


def closed_class(surface: str) -> str | None:
    """The closed class that the whole surface belongs to (weekday, month, number, kinship …), else ``None``."""
    member = closed_member(surface)
    return None if member is None else member[0]


def is_ambiguous(surface: str) -> bool:
    """Whether the whole surface is a word with two common meanings, so that no similarity says which is meant."""
    return fold(surface) in AMBIGUOUS


def _tokens(surface: str) -> Iterator[str]:
    return (match.group() for match in _TOKEN.finditer(unicodedata.normalize("NFKC", fold(surface))))


def _split(surface: str) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """The qualifiers of a surface and what is left without them, each in order."""
    whole = _MEMBERS.get(fold(surface))
    if whole is not None:
        return (whole,), ()
    found: list[tuple[str, str]] = []
    rest: list[str] = []
    for token in _tokens(surface):
        member = closed_member(token)
        if member is None:
            rest.append(token)
        else:
            found.append(member)
    return tuple(found), tuple(rest)


def qualifiers(surface: str) -> tuple[tuple[str, str], ...]:
    """The (class, value) of each word, numeral and single letter of ``surface`` that is a member of a closed class, in order."""
    return _split(surface)[0]


def differ_only_in_qualifier(a: str, b: str) -> bool:
    """Whether two keys are siblings: the same words but for members of closed classes, as "Agent A" and "Agent B" are.

    A qualifier that only one of them has counts as well ("Python" and "Python 3"); so do two bare members.
    """
    ours, theirs = _split(a), _split(b)
    return ours[1] == theirs[1] and ours[0] != theirs[0]
