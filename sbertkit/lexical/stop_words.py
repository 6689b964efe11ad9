"""The most frequent words of languages, which tell what language a text is in and little else.

They are searched for only in a phrase, or where a query has no other words.
"""

_WORDS = {
    "arabic": (
        "في من على إلى عن أن إن هذا هذه التي الذي كان كانت ما لا مع هو هي أو ثم قد كل "
        "بعد قبل بين لم لن حتى كما ذلك تلك عند هل أي غير"
    ),
    "armenian": ("և է են որ ու մեջ իր այս չի եմ ես նա մենք դուք այդ մի համար հետ"),
    "basque": ("eta da ez bat dira zen egin izan du ere hau baina duen dute den edo hori bere"),
    "catalan": (
        "el els les de i la que en un una amb per és dels del però són al als es no com "
        "més ha va si aquest aquesta seva també quan sobre on o ni hi li ho"
    ),
    "czech": (
        "a se v na je že o s z do i to za by ale jako jsou které pro po být který která "
        "co jak nebo už jen k ve si při od tak není má byl byla"
    ),
    "danish": (
        "og i at det er en af på til den ikke med der for de et har som jeg vi du han "
        "hun fra om men var kan skal vil sig ud op efter når eller hvad"
    ),
    "dutch": (
        "de het een en van in is dat op te zijn met voor niet die er aan om ook als bij "
        "maar dan nog naar uit door over ik je hij ze wij we u deze dit wat hoe waar "
        "wie wordt worden was waren heeft hebben had kan of geen tot"
    ),
    "english": (
        "i me my myself we our ours you your yours he him his she her hers it its they "
        "them their theirs what which who whom whose this that these those am is are "
        "was were be been being have has had having do does did doing a an the and but "
        "if or because as until while of at by for with about against between into "
        "through during before after above below to from up down in out on off over "
        "under again further then once here there when where why how all any both each "
        "few more most other some such no nor not only own same so than too very can "
        "could will would shall should might must just also upon via etc"
    ),
    "estonian": ("ja on ei see et oli ta kui mis aga ka oma need ning või siis nii kes selle"),
    "finnish": (
        "ja on ei se että oli hän ovat mutta kun joka myös sen tai niin minä sinä me te "
        "he mitä mikä kuka ole olla jos kuin vain nyt sitä tämä"
    ),
    "french": (
        "le la les de des et un une est en du que qui dans pour pas sur au ce il avec "
        "ne se plus par je tu elle on nous vous ils elles son sa ses leur leurs mon ma "
        "mes ton ta tes ces cet cette aux ou où mais donc si comme quand quel quelle "
        "quels quelles quoi comment pourquoi sont été être a ai as ont avait était "
        "étaient qu y"
    ),
    "german": (
        "der die das und ist in ein eine zu den mit von nicht auf für sich dem im des "
        "es an als auch er sie ich du wir ihr aus bei nach wie um am sind noch wird "
        "einen einer einem eines nur vor zur zum war waren hat haben hatte kann werden "
        "wenn aber oder so über unter durch man was wer wo warum welche welcher welches "
        "dass daß mich mir mein sein ihre seine kein keine"
    ),
    "greek": (
        "και το η ο να τα της του με σε που από για τη είναι δεν στο στη στην τον την "
        "οι των ένα μια θα τι πως αλλά ή αν"
    ),
    "hindi": (
        "है के में की का और से को पर हैं यह एक नहीं ने था थे थी भी वह कि हो कर तो जो इस या ही लिए क्या कैसे अपने"
    ),
    "hungarian": (
        "a az és hogy nem egy is van ez de volt meg csak mint el ha vagy mi ki én te ő "
        "azt ezt már még lesz kell olyan nagyon minden"
    ),
    "indonesian": (
        "yang dan di dengan untuk ini itu dari pada dalam tidak adalah ke akan atau "
        "juga oleh karena sebagai saya kami kita mereka dia ada bisa apa"
    ),
    "irish": ("an agus na ar go le bhí sé tá ag is don ní leis nach sa i as do a mar ach"),
    "italian": (
        "il di che e la un una è per non in si con del della le sono i gli da lo al dei "
        "delle alla nel nella dal dalla ma come più anche io tu lui lei noi voi loro mi "
        "ti ci vi se o questo questa quello quella chi cosa dove quando perché ha hanno "
        "era essere"
    ),
    "lithuanian": (
        "ir kad yra su iš į apie bet kaip tai buvo ne per nuo jis ji jie aš mes jo jos "
        "kai jau tik o ar"
    ),
    "nepali": ("छ को र मा हो पनि यो गर्ने भएको लाई छन् ले का की गरेको"),
    "norwegian": (
        "og i å det er en av på til den ikke med som for de et har jeg vi du han hun "
        "fra om men var kan skal vil seg ut opp etter når eller hva"
    ),
    "persian": ("و در به از که این را با است برای آن یک تا بر هم نیز شد شده خود هر یا اما ما من"),
    "polish": (
        "w i na z się nie do to że jest o jak po ale co dla za od są a tak go by czy "
        "już tylko ja ty on ona my oni ten ta te który która które przez przy być był "
        "była ma lub"
    ),
    "portuguese": (
        "o a de que e do da em um uma para com não os as no na se por mais dos das ao "
        "aos à às pelo pela como mas foi ele ela eu nós eles seu sua ou quando onde "
        "qual quem ser são está tem já também só até isso este esta"
    ),
    "romanian": (
        "și de în a la cu nu este un o pe care din că să mai au fi fost sunt pentru ce "
        "dar sau el ea eu noi lui prin între după"
    ),
    "russian": (
        "и в не на что с по это как из у но за то он его к а от о для же вы мы я она "
        "они ты бы все так ее их был была было были быть при или если только уже до вот "
        "когда кто где чем об ли ни нет есть мне меня ему"
    ),
    "serbian": (
        "је и у да се на су за са од није као који која које то а али по из о што би ће "
        "сам или до тај ова"
    ),
    "spanish": (
        "el la de que y en un una los las es por con no se del al para lo su está como "
        "más o pero sus le ya este esta sí porque entre cuando muy sin sobre ser "
        "también me hasta hay donde quien desde todo nos durante uno les ni contra "
        "otros ese eso ante ellos e esto mí qué unos yo cuál cómo dónde son fue era han "
        "ha"
    ),
    "swedish": (
        "och i att det är en av på till den inte med som för de ett har jag vi du han "
        "hon från om men var kan ska vill sig ut upp efter när eller vad"
    ),
    "tamil": ("ஒரு மற்றும் இந்த என்று அந்த அவர் இது அது என என்ற உள்ள"),
    "turkish": (
        "ve bir bu da de için ile çok ne daha olarak olan gibi var o ben sen biz ama mi "
        "mı en ki kadar sonra değil ya her"
    ),
}

STOP_WORDS = {language: frozenset(words.split()) for language, words in _WORDS.items()}
"""By the name of the language; of some languages there are none."""
